"""What is remembered of rows is never older than they are."""

from __future__ import annotations

from typing import Any

from apiserver.stores.documents.sqlite.derived import Derived, Reading


def read(derived: Derived, *rows: int, key: str = "k", root: str = "f") -> list[Any]:
    """What is remembered of the rows."""
    reading = derived.read("tasks", key, root)
    found = [reading.known(row) for row in rows]
    reading.finish()
    return found


def make(reading: Reading, row: int, value: Any) -> None:
    """Ask for a value, and make it as it is not known."""
    assert reading.known(row) is None
    reading.make(value)


def test_values_are_remembered_once_made() -> None:
    derived = Derived()
    reading = derived.read("tasks", "k", "f")
    make(reading, 1, "x")
    make(reading, 7, None)
    assert read(derived, 1, 7) == [None, None]
    reading.finish()
    assert read(derived, 1, 7, 3, 100) == ["x", b"", None, None]
    assert read(derived, 1, key="another") == [None]


def test_a_row_that_changed_is_forgotten() -> None:
    derived = Derived()
    reading = derived.read("tasks", "k", "f")
    for row in range(4):
        make(reading, row, row)
    reading.finish()
    derived.forget("tasks", [1], {"other"})
    derived.forget("models", [1])
    assert read(derived, 0, 1) == [0, 1]
    derived.forget("tasks", [1], {"f", "other"})
    derived.forget("tasks", [2])
    assert read(derived, 0, 1, 2, 3) == [0, None, None, 3]


def test_what_was_made_while_its_row_changed_is_not_kept() -> None:
    derived = Derived()
    reading = derived.read("tasks", "k", "f")
    make(reading, 1, "old")
    make(reading, 2, "same")
    derived.forget("tasks", [1, 3])
    make(reading, 3, "old")
    reading.finish()
    assert read(derived, 1, 2, 3) == [None, "same", None]
    later = derived.read("tasks", "k", "f")
    make(later, 1, "new")
    later.finish()
    assert read(derived, 1) == ["new"]


def test_only_some_kinds_are_remembered() -> None:
    derived = Derived()
    for number in range(9):
        reading = derived.read("tasks", number, "f")
        make(reading, 1, number)
        reading.finish()
    assert read(derived, 1, key="unknown") == [None]
    reading = derived.read("tasks", 8, "f")
    assert reading.known(1) == 8
    reading.finish()
    reading = derived.read("tasks", 0, "f")
    assert reading.known(1) is None
    reading.finish()


def test_what_is_being_read_is_told_what_changes() -> None:
    derived = Derived()
    reading = derived.read("tasks", "k", "f")
    make(reading, 1, "old")
    reading.finish()
    reading = derived.read("tasks", "k", "f")
    for number in range(20):
        read(derived, key=f"other {number}")
    derived.forget("tasks", [1])
    make(reading, 1, "new")


def test_long_texts_are_not_remembered() -> None:
    derived = Derived()
    reading = derived.read("tasks", "k", "f")
    make(reading, 1, "long" * 1000)
    make(reading, 2, "short")
    reading.finish()
    assert read(derived, 1, 2) == [None, "short"]

"""Answers are remembered for as long as they are right."""

from __future__ import annotations

from apiserver.stores.documents.sqlite.remembered import Remembered


class Asked:
    """Counts how often it is asked, and answers that number."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> int:
        self.times += 1
        return self.times


def test_an_answer_is_remembered_until_a_field_of_it_changes() -> None:
    remembered, ask = Remembered(), Asked()
    assert [remembered.of("tasks", {"tags", "type"}, "q", ask) for _ in range(2)] == [1, 1]
    remembered.changed("tasks", {"status"})
    remembered.changed("models", {"tags"})
    remembered.changed("models", None)
    assert remembered.of("tasks", {"tags", "type"}, "q", ask) == 1
    remembered.changed("tasks", {"status", "type"})
    assert remembered.of("tasks", {"tags", "type"}, "q", ask) == 2
    remembered.changed("tasks", None)
    assert remembered.of("tasks", {"tags", "type"}, "q", ask) == 3
    assert remembered.of("tasks", {"tags", "type"}, "another", ask) == 4
    assert remembered.of("models", {"tags", "type"}, "q", ask) == 5


def test_an_answer_that_was_overtaken_is_not_remembered() -> None:
    remembered = Remembered()

    def ask() -> str:
        remembered.changed("tasks", {"tags"})
        return "old"

    assert remembered.of("tasks", {"tags"}, "q", ask) == "old"
    assert remembered.of("tasks", {"tags"}, "q", lambda: "new") == "new"


def test_what_is_outdated_is_forgotten_also_if_nobody_asks_for_it_again() -> None:
    remembered = Remembered()
    for question in ("old", "new"):
        remembered.of("tasks", {"tags"}, question, lambda: 1)
        remembered.of("models", {"tags"}, "others", lambda: 2)
        assert set(remembered._found) == {("tasks", question), ("models", "others")}
        remembered.changed("tasks", {"tags"})


def test_only_some_answers_are_remembered() -> None:
    remembered, ask = Remembered(), Asked()
    for number in range(65):
        remembered.of("tasks", (), str(number), ask)
    assert remembered.of("tasks", (), "64", ask) == 65
    assert remembered.of("tasks", (), "0", ask) == 66
    assert [remembered.of("tasks", (), "x" * 30_000, ask) for _ in range(2)] == [67, 68]


def test_answers_have_so_many_rows_at_most() -> None:
    remembered, asked = Remembered(rows=10), []

    def ask(question: str, rows: int) -> None:
        def found() -> list[int]:
            asked.append(question)
            return [0] * rows

        assert remembered.of("tasks", {"tags"}, question, found) == [0] * rows

    for question, rows in (("a", 4), ("b", 4), ("too many", 11), ("too many", 11), ("a", 4), ("b", 4)):
        ask(question, rows)
    assert asked == ["a", "b", "too many", "too many"]
    ask("c", 4)  # in the place of "a"
    ask("b", 4)
    ask("a", 4)
    assert asked[4:] == ["c", "a"]
    for _ in range(5):  # the same question takes no more room when it is answered anew
        remembered.changed("tasks", {"tags"})
        ask("a", 4)
    ask("b", 4)
    asked.clear()
    ask("a", 4)
    assert asked == []

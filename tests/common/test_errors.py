"""What refusals say is bounded, whatever they are about."""

from __future__ import annotations

from apiserver.common.errors import Refusal, Why, invalid_id, some_of


def test_few_ids_are_all_named() -> None:
    assert invalid_id("task", "a", "b").message == "Invalid task id: ids=(a, b)"


def test_of_many_ids_the_first_are_named() -> None:
    named = some_of([str(n) for n in range(1000)]).split(", ")
    assert named == [*(str(n) for n in range(20)), "and 980 more"]
    assert len(invalid_id("task", *["x" * 70_000] * 100).message) < 4500


def test_no_message_is_long() -> None:
    assert len(Refusal(Why.INVALID, "x" * 100_000).message) < 4100

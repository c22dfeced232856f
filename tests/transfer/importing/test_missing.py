"""What is missing of a run is kept in few entries, and every single thing is counted."""

from __future__ import annotations

from apiserver.transfer.importing.missing import Missing, Reason, together


def test_the_same_place_and_cause_are_one_entry() -> None:
    one = Missing(Reason.BROKEN, "line 3", "no number", 2)
    assert together([one], [one, Missing(Reason.ABSENT, "line 3", "no number")]) == [
        Missing(Reason.BROKEN, "line 3", "no number", 4),
        Missing(Reason.ABSENT, "line 3", "no number"),
    ]


def test_a_hundred_places_are_told_apart_and_all_are_counted() -> None:
    places = [Missing(Reason.BROKEN, f"line {number}" + "x" * 1000, "no number") for number in range(150)]
    kept = together(together([], places[:120]), places[120:])
    assert len(kept) == 101
    assert kept[-1] == Missing(Reason.BROKEN, "other places", "", 50)
    assert all(len(one.of) <= 300 for one in kept)

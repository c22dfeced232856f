"""Histories of a server that is killed, and made-up ones that are wrong: the checks must find what is wrong in them.

`EVENTS_HISTORY_MINUTES=30 pytest tests/robustness/test_history.py` goes on longer. So does
`python -m tests.robustness.history`.
"""

from __future__ import annotations

import math
import os
import random
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest

from tests.harness import served
from tests.robustness.history import linear
from tests.robustness.history.__main__ import record
from tests.robustness.history.events import wrong_events, wrong_newest
from tests.robustness.history.operations import History, Operation, Outcome
from tests.robustness.history.rounds import STRICT, Counted, Kills, run_round
from tests.robustness.history.tasks import (
    GONE,
    NOTHING,
    PUBLISHED,
    STATUS,
    THERE,
    USED,
    status_model,
    wrong_entries,
    wrong_models,
    wrong_statuses,
)

MINUTES = float(os.environ.get("EVENTS_HISTORY_MINUTES", "0"))
DONE, REFUSED, UNKNOWN = Outcome


def test_a_killed_server_answers_as_if_it_were_one_that_is_not(tmp_path: Path, dice: random.Random) -> None:
    counted = Counted()
    with served(tmp_path / "data", merge_events=500) as server:
        for _ in range(2):
            run_round({STRICT: server}, dice, counted, Kills([server], dice, counted, 1))
            assert counted.wrong == []
        assert "Traceback" not in server.log.read_text()
    assert min(counted.outcomes[one] for one in Outcome) > 0
    if MINUTES:
        assert record(MINUTES, dice.randrange(2**32), {}).wrong == []


def test_two_servers_that_are_killed_answer_as_if_they_were_one(engines: dict[str, Any], dice: random.Random) -> None:
    counted = record(MINUTES, dice.randrange(2**32), engines)
    assert counted.wrong == []
    assert counted.kills > 0
    assert counted.outcomes[DONE] > 0


# --- records that are wrong, or look so and are not ----------------------------------------------------


def call(
    kind: str,
    began: float,
    ended: float,
    outcome: Outcome = DONE,
    answer: Any = None,
    *,
    what: Any = None,
    client: str = "a",
    server: str = "one",
    on: str = "task",
) -> Operation:
    end = math.inf if outcome is UNKNOWN else ended
    return Operation(client, server, kind, on, what, began, end, outcome, answer)


def write(n: int, began: float, ended: float, outcome: Outcome = DONE, **more: Any) -> Operation:
    return call("write", began, ended, outcome, what=n, **more)


def read(found: dict[int, int], began: float, ended: float, client: str = "r", server: str = "one") -> Operation:
    batches = {("a", n): count for n, count in found.items()}
    return call("read events", began, ended, DONE, batches, what="points", client=client, server=server)


def events(*calls: Operation, strict: tuple[str, ...] = ()) -> list[str]:
    return wrong_events(History([*calls]), strict, {"points": 3})


DELETED = call("delete events", 10, 11)

GOOD_EVENTS = {
    "what was acknowledged is there": [write(1, 0, 1), read({1: 3}, 2, 3)],
    "what overlaps may be there": [write(1, 0, 5), read({1: 3}, 2, 3)],
    "what overlaps may be missing": [write(1, 0, 5), read({}, 2, 3)],
    "what overlaps may be there by half": [write(1, 0, 5), read({1: 1}, 2, 3)],
    "what is unknown may be there": [write(1, 0, 1, UNKNOWN), read({1: 3}, 2, 3)],
    "what is unknown may be missing": [write(1, 0, 1, UNKNOWN), read({}, 2, 3)],
    "sent again after no answer, it is there once": [write(1, 0, 1, UNKNOWN), write(1, 2, 3), read({1: 3}, 4, 5)],
    "deleted events are gone": [write(1, 0, 1), DELETED, read({}, 12, 13)],
    "what came after the deletion is there": [write(1, 0, 1), DELETED, write(2, 12, 13), read({2: 3}, 14, 15)],
    "what overlaps the deletion may be gone": [write(1, 9, 12), DELETED, read({}, 14, 15)],
    "what overlaps the deletion may be there": [write(1, 9, 12), DELETED, read({1: 3}, 14, 15)],
    "a read before, which was deleted since": [write(1, 0, 1), read({1: 3}, 2, 3), DELETED, read({}, 12, 13)],
    "another server sees it later": [write(1, 0, 1), read({}, 2, 3, server="two")],
}
WRONG_EVENTS = {
    "what was acknowledged is missing": [write(1, 0, 1), read({}, 2, 3)],
    "it is there by half": [write(1, 0, 1), read({1: 2}, 2, 3)],
    "it is there twice": [write(1, 0, 1, UNKNOWN), write(1, 2, 3), read({1: 6}, 4, 5)],
    "what is unknown is there twice": [write(1, 0, 1, UNKNOWN), read({1: 4}, 4, 5)],
    "what was refused is there": [write(1, 0, 1, REFUSED), read({1: 3}, 2, 3)],
    "what was never sent is there": [write(1, 0, 1), read({1: 3, 2: 3}, 2, 3)],
    "what is sent later is there": [read({1: 3}, 2, 3), write(1, 4, 5)],
    "a read goes backwards": [write(1, 0, 9), read({1: 3}, 2, 3), read({}, 4, 5)],
    "what is unknown goes again": [write(1, 0, 1, UNKNOWN), read({1: 3}, 2, 3), read({}, 4, 5)],
    "what was deleted is there": [write(1, 0, 1), DELETED, read({1: 3}, 12, 13)],
    "a deletion takes what came after it": [write(1, 12, 13), DELETED, read({}, 14, 15)],
    "a refused deletion takes events": [write(1, 0, 1), call("delete events", 2, 3, REFUSED), read({}, 4, 5)],
}


@pytest.mark.parametrize("name", GOOD_EVENTS)
def test_events_that_are_as_promised(name: str) -> None:
    assert events(*GOOD_EVENTS[name]) == []


@pytest.mark.parametrize("name", WRONG_EVENTS)
def test_events_that_are_wrong(name: str) -> None:
    assert len(events(*WRONG_EVENTS[name])) == 1


def test_a_strict_server_has_to_see_what_another_acknowledged() -> None:
    assert len(events(write(1, 0, 1), read({}, 2, 3, server="two"), strict=("two",))) == 1


def test_a_search_ends_and_what_it_did_not_find_does_not_fit() -> None:
    calls = [call("read", began, began + 3, answer=3 - began) for began in range(4)]

    def counts_down(state: int, operation: Operation) -> list[int]:
        return [state - 1] if operation.answer == state else []

    assert linear.fits(calls, 3, counts_down)
    assert not linear.fits(calls, 3, counts_down, steps=3)


@pytest.mark.parametrize("seed", range(20))
def test_the_search_finds_what_a_search_of_all_orders_finds(seed: int) -> None:
    dice = random.Random(seed)
    calls = [_random_call(dice) for _ in range(7)]
    assert linear.fits(calls, "created", status_model) == _any_order_fits(calls)


def _random_call(dice: random.Random) -> Operation:
    kind = dice.choice(["started", "stopped", "publish", "reset", "read", "read"])
    outcome = dice.choice([DONE, DONE, UNKNOWN]) if kind != "read" else DONE
    answer = dice.choice(["in_progress", "stopped", "created"]) if kind == "read" else None
    began = dice.uniform(0, 5)
    return call(kind, began, began + dice.uniform(1, 5), outcome, answer)


def _any_order_fits(calls: list[Operation]) -> bool:
    """By trying every order of the calls with an answer, with every choice of the others."""
    unknown = [one for one in calls if one.outcome is UNKNOWN]
    for count in range(len(unknown) + 1):
        for done in combinations(unknown, count):
            for order in permutations([*(one for one in calls if one.outcome is not UNKNOWN), *done]):
                in_time = all(one.began <= later.ended for n, later in enumerate(order) for one in order[:n])
                states = {"created"} if in_time else set()
                for one in order:
                    states = {after for state in states for after in status_model(state, one)}
                if states:
                    return True
    return False


@pytest.mark.parametrize(("value", "fits"), [(0, False), (1, True), (2, True), (3, False)])
def test_the_newest_value_of_a_point(value: int, fits: bool) -> None:
    writes = [write(0, 0, 1), write(1, 2, 3), write(2, 4, 9), write(3, 10, 11)]
    found = wrong_newest(History([*writes, call("read newest", 5, 6, answer={"a": value})]), [])
    assert (found == []) == fits


GOOD_STATUSES = {
    "one after another": [call("started", 0, 1), call("stopped", 2, 3), call("read", 4, 5, answer="stopped")],
    "an order that is not the one of the starts": [
        *(call("started", 0, 9), call("read", 1, 2, answer="created"), call("read", 3, 4, answer="in_progress")),
    ],
    "refused, because another came first": [
        *(call("started", 0, 1), call("failed", 2, 9), call("completed", 2, 9, REFUSED, STATUS)),
        call("read", 10, 11, answer="failed"),
    ],
    "done after nobody knew": [
        *(call("started", 0, 1, UNKNOWN), call("read", 2, 3, answer="created")),
        *(call("stopped", 4, 5), call("read", 6, 7, answer="stopped")),
    ],
    "deleted": [call("delete", 0, 5), call("read", 2, 3, REFUSED, GONE), call("started", 6, 7, REFUSED, GONE)],
    "deleted by force": [call("started", 0, 1), call("delete by force", 2, 3), call("read", 4, 5, REFUSED, GONE)],
    "not deleted, because it is used": [call("started", 0, 1), call("delete", 2, 3, REFUSED, USED)],
    "not deleted, because another started it": [
        *(call("started", 0, 5), call("delete", 0, 5, REFUSED, USED), call("read", 6, 7, answer="in_progress")),
    ],
    "deleted by two at once": [call("delete", 0, 5), call("delete by force", 1, 6)],
    "nobody knows whether it was deleted": [
        *(call("delete", 0, 1, UNKNOWN), call("started", 2, 3), call("read", 4, 5, answer="in_progress")),
    ],
    "taken out of a queue": [
        *(call("enqueue", 0, 1), call("dequeue", 2, 3, answer="created"), call("read", 4, 5, answer="created")),
    ],
    "stopped while it is taken out of a queue": [
        *(call("enqueue", 0, 1), call("stopped", 2, 9), call("dequeue", 2, 9, answer=NOTHING)),
        *(call("dequeue", 2, 9, UNKNOWN), call("read", 10, 11, answer="stopped")),
    ],
}
WRONG_STATUSES = {
    "a read goes backwards": [
        *(call("started", 0, 9), call("read", 1, 2, answer="in_progress"), call("read", 3, 4, answer="created")),
    ],
    "what was acknowledged is not there": [call("started", 0, 1), call("read", 2, 3, answer="created")],
    "what may not follow": [call("started", 0, 1), call("publish", 2, 3)],
    "published twice": [
        *(call("started", 0, 1), call("stopped", 2, 3), call("publish", 4, 9), call("publish", 4, 9)),
    ],
    "both of two that exclude each other": [
        *(call("started", 0, 1), call("failed", 2, 9), call("completed", 2, 9)),
    ],
    "refused, although it may": [call("started", 0, 1), call("completed", 2, 3, REFUSED, STATUS)],
    "taken out of a queue, and no longer stopped": [
        *(call("enqueue", 0, 1), call("dequeue", 2, 9, answer="created"), call("stopped", 2, 3)),
        call("read", 4, 5, answer="stopped"),
    ],
    "not taken out of a queue, although it waits": [call("enqueue", 0, 1), call("dequeue", 2, 3, answer=NOTHING)],
    "a published task is reset": [
        *(call("started", 0, 1), call("stopped", 2, 3), call("publish", 4, 9), call("reset", 5, 9)),
        *(call("read", 6, 7, answer="published"), call("read", 10, 11, answer="created")),
    ],
    "a task that is used is deleted without force": [call("started", 0, 1), call("delete", 2, 3)],
    "a published task is deleted without force, says nobody": [
        *(call("started", 0, 1), call("stopped", 2, 3), call("publish", 4, 5), call("delete", 6, 7, UNKNOWN)),
        call("read", 8, 9, REFUSED, GONE),
    ],
    "a draft is not deleted, as if it were used": [
        call("read", 0, 1, answer="created"),
        call("delete", 2, 3, REFUSED, USED),
    ],
    "there again after it was deleted": [call("delete", 0, 1), call("read", 2, 3, answer="created")],
    "gone, although it was not deleted": [call("started", 0, 1), call("read", 2, 3, REFUSED, GONE)],
}


@pytest.mark.parametrize("name", GOOD_STATUSES)
def test_statuses_that_are_as_promised(name: str) -> None:
    assert wrong_statuses(History(GOOD_STATUSES[name])) == []


@pytest.mark.parametrize("name", WRONG_STATUSES)
def test_statuses_that_are_wrong(name: str) -> None:
    [told] = wrong_statuses(History(WRONG_STATUSES[name]))
    assert "in no order" in told
    assert str(WRONG_STATUSES[name][-1]) in told or "published" in name


GOOD_MODELS = {
    "published, so it stays": [
        *(call("publish model", 0, 1), call("delete with model", 2, 3, REFUSED, USED)),
        call("read model", 4, 5, answer="published"),
    ],
    "deleted before it was published": [
        *(call("delete with model", 0, 9), call("publish model", 0, 9, REFUSED, GONE)),
        call("read model", 10, 11, REFUSED, GONE),
    ],
    "published by one of two": [call("publish model", 0, 9), call("publish model", 0, 9, REFUSED, PUBLISHED)],
    "nobody knows whether it was published": [
        *(call("publish model", 0, 1, UNKNOWN), call("delete with model", 2, 3, REFUSED, USED)),
    ],
    "nobody knows whether it was deleted": [
        *(
            call("delete with model", 0, 1, UNKNOWN),
            call("read model", 2, 3, answer="draft"),
            call("publish model", 4, 5),
        ),
    ],
}
WRONG_MODELS = {
    "a published model is deleted": [
        *(call("publish model", 0, 1), call("delete with model", 2, 3), call("read model", 4, 5, REFUSED, GONE)),
    ],
    "both published and deleted": [call("publish model", 0, 9), call("delete with model", 0, 9)],
    "published and gone, though nobody knows of the deletion": [
        *(call("publish model", 0, 1), call("delete with model", 2, 3, UNKNOWN)),
        call("read model", 4, 5, REFUSED, GONE),
    ],
    "published, and then a draft": [call("publish model", 0, 1), call("read model", 2, 3, answer="draft")],
    "published twice": [call("publish model", 0, 9), call("publish model", 0, 9)],
    "used, although it is a draft": [call("delete with model", 0, 1, REFUSED, USED)],
}


@pytest.mark.parametrize("name", GOOD_MODELS)
def test_models_that_are_as_promised(name: str) -> None:
    assert wrong_models(History(GOOD_MODELS[name])) == []


@pytest.mark.parametrize("name", WRONG_MODELS)
def test_models_that_are_wrong(name: str) -> None:
    assert len(wrong_models(History(WRONG_MODELS[name]))) == 1


def pop(began: float, ended: float, answer: str | None = "task", outcome: Outcome = DONE) -> Operation:
    return call("pop", began, ended, outcome, answer if outcome is DONE else None, on="queue")


GOOD_ENTRIES = {
    "to one worker": [call("enqueue", 0, 1), pop(2, 5), pop(2, 5, None)],
    "again, and again to one": [call("enqueue", 0, 1), pop(2, 3), call("enqueue", 4, 5), pop(6, 7), pop(8, 9, None)],
    "there already": [call("enqueue", 0, 1), call("enqueue", 2, 3, REFUSED, THERE), pop(4, 5), pop(6, 7, None)],
    "taken out": [call("enqueue", 0, 1), call("dequeue", 2, 3), pop(4, 5, None)],
    "the answer was lost": [call("enqueue", 0, 1), pop(2, 3, outcome=UNKNOWN), pop(4, 5, None)],
    "nobody knows whether it waits": [call("enqueue", 0, 1, UNKNOWN), pop(2, 3, None)],
}
WRONG_ENTRIES = {
    "to two workers": [call("enqueue", 0, 1), pop(2, 5), pop(3, 6)],
    "lost": [call("enqueue", 0, 1), pop(2, 3, None)],
    "taken out, and given to a worker": [call("enqueue", 0, 1), call("dequeue", 2, 3), pop(4, 5)],
    "there twice": [call("enqueue", 0, 1), call("enqueue", 2, 3), pop(4, 5), pop(4, 5)],
    "not there, and refused for that": [call("enqueue", 0, 1, REFUSED, THERE), pop(2, 3, None)],
    "more are lost than answers": [
        *(call("enqueue", 0, 1, on="one"), call("enqueue", 0, 1, on="two")),
        *(pop(2, 3, outcome=UNKNOWN), pop(4, 5, None)),
    ],
}


@pytest.mark.parametrize("name", GOOD_ENTRIES)
def test_entries_that_are_as_promised(name: str) -> None:
    assert wrong_entries(History(GOOD_ENTRIES[name])) == []


@pytest.mark.parametrize("name", WRONG_ENTRIES)
def test_entries_that_are_wrong(name: str) -> None:
    assert len(wrong_entries(History(WRONG_ENTRIES[name]))) == 1

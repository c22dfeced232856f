"""Whether calls that overlapped can have been done one after another, as if there were one client.

It is the search of Wing and Gong. The next call may be any one that began before the first end among the calls that are
left. A call fits if the state allows its answer, and changes the state. What was tried with the same calls done and the
same state is not tried again. For example, a task is stopped, and three calls overlap:

    publish     ├──────────┤ done
    read          ├──┤ published           the order publish, read, publish does not fit: a published task
    publish     ├──────────────┤ done      cannot be published, so one of the two had to be refused
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from tests.robustness.history.operations import Operation, Outcome

#: Steps after which a search gives up, some ten seconds: of many calls whose outcome is not known, each may be done or
#: not, which doubles the search.
_STEPS = 200_000

State = TypeVar("State", bound=Hashable)
#: The states that may follow a state by a call with this answer: none if the answer does not fit.
Model = Callable[[State, Operation], Iterable[State]]


def fits(operations: Sequence[Operation], first: State, model: Model[State], steps: int = _STEPS) -> bool:
    """Whether there is an order of the operations, from the state `first`, in which all answers fit the model.

    An operation whose outcome is not known may be anywhere after it began, or nowhere. A search of more than `steps`
    ends without a result: the operations are taken to fit.
    """
    order = sorted(operations, key=lambda one: one.began)
    needed = sum(1 << n for n, one in enumerate(order) if one.outcome is not Outcome.UNKNOWN)
    tried: set[tuple[int, State]] = set()
    left: list[tuple[int, State]] = [(0, first)]
    while left and len(tried) < steps:
        done, state = left.pop()
        if done & needed == needed:
            return True
        if (done, state) in tried:
            continue
        tried.add((done, state))
        for n in _next(order, done):
            left.extend((done | 1 << n, after) for after in model(state, order[n]))
    return bool(left)


def _next(order: Sequence[Operation], done: int) -> list[int]:
    """The operations that may come next: those that began before the first end among all that are left."""
    found, first_end = [], math.inf
    for n, one in enumerate(order):
        if done >> n & 1:
            continue
        if one.began > first_end:
            break
        found.append(n)
        first_end = min(first_end, one.ended)
    return found


def shortest_that_does_not_fit(
    operations: Sequence[Operation], first: State, model: Model[State]
) -> Sequence[Operation]:
    """The shortest beginning of the history that fits no order.

    Calls that were still under way at its end count as unknown.
    """
    for end in sorted(one.ended for one in operations if one.outcome is not Outcome.UNKNOWN):
        begun = [one for one in operations if one.began <= end]
        some = [one if one.ended <= end else replace(one, outcome=Outcome.UNKNOWN, ended=math.inf) for one in begun]
        if not fits(some, first, model):
            return sorted(begun, key=lambda one: one.began)
    return []

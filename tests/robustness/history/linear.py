"""Whether calls that overlapped can have been done one after another, as if there were one client.

It is the search of Wing and Gong. The next call may be any one that began before the first end among the calls that are
left. A call fits if the state allows its answer, and changes the state. For example, a task is stopped, and three calls
overlap:

    publish     ├──────────┤ done
    read          ├──┤ published           the order publish, read, publish does not fit: a published task
    publish     ├──────────────┤ done      cannot be published, so one of the two had to be refused

Two rules keep the search short, and lose no order:

- Of calls that are alike, such as both of publish, the one that ends first is next: the other may come later as well.
- A state is tried again, after the same calls with an answer, only if it took other calls without one: who has fewer of
  them behind can do all that is done with more.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from tests.robustness.history.operations import Operation, Outcome

#: Steps after which a search ends, some ten seconds. A history that fits takes some hundreds, seldom some thousands.
_STEPS = 200_000

State = TypeVar("State", bound=Hashable)
#: The states that may follow a state by a call with this answer: none if the answer does not fit. It looks at `kind`,
#: `on`, `what`, `outcome` and `answer`.
Model = Callable[[State, Operation], Iterable[State]]


def fits(operations: Sequence[Operation], first: State, model: Model[State], steps: int = _STEPS) -> bool:
    """Whether there is an order of the operations, from the state `first`, in which all answers fit the model.

    An operation whose outcome is not known may be anywhere after it began, or nowhere. Operations for which so many
    `steps` find no order do not fit: they are to be looked at.
    """
    order = sorted(operations, key=lambda one: one.began)
    needed = sum(1 << n for n, one in enumerate(order) if one.outcome is not Outcome.UNKNOWN)
    tried: defaultdict[tuple[int, State], list[int]] = defaultdict(list)
    left: list[tuple[int, State]] = [(0, first)]
    while left and steps:
        done, state = left.pop()
        if done & needed == needed:
            return True
        taken = done & ~needed
        before = tried[done & needed, state]
        if any(fewer & taken == fewer for fewer in before):
            continue
        before.append(taken)
        steps -= 1
        for n in _next(order, done):
            left.extend((done | 1 << n, after) for after in model(state, order[n]))
    return False


def _next(order: Sequence[Operation], done: int) -> list[int]:
    """The operations that may come next: those that began before the first end among all that are left.

    Of those alike, only the one that ends first. That which ends last comes first, as it is tried last.
    """
    next_of: dict[Hashable, int] = {}
    first_end = math.inf
    for n, one in enumerate(order):
        if done >> n & 1:
            continue
        if one.began > first_end:
            break
        kind = (one.kind, one.on, one.what, one.outcome, one.answer)
        if one.ended < order[next_of.setdefault(kind, n)].ended:
            next_of[kind] = n
        first_end = min(first_end, one.ended)
    return sorted(next_of.values(), key=lambda n: -order[n].ended)


def shortest_that_does_not_fit(
    operations: Sequence[Operation], first: State, model: Model[State]
) -> Sequence[Operation]:
    """The shortest beginning of a history that fits no order, which fits none either; empty if the history fits.

    Calls that were still under way at its end count as unknown.
    """
    ends = sorted(one.ended for one in operations if one.outcome is not Outcome.UNKNOWN)

    def begun(end: float) -> list[Operation]:
        return [one for one in operations if one.began <= end]

    def is_wrong(end: float) -> bool:
        until = [
            one if one.ended <= end else replace(one, outcome=Outcome.UNKNOWN, ended=math.inf) for one in begun(end)
        ]
        return not fits(until, first, model)

    shortest = bisect_left(ends, True, key=is_wrong)
    return sorted(begun(ends[shortest]), key=lambda one: one.began) if shortest < len(ends) else []

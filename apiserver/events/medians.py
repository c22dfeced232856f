"""Medians of each `width` neighbours of a long column, by minima and maxima of whole columns.

Neighbouring windows have most values in common. So some windows, a power of two, are worked out together: first what
all of them have in common, then what halves of them have in common, and so on. Values that cannot be a median any more
are left out on the way. For example, windows of 5 values, two together:

    first window     v0 v1 v2 v3 v4
    second window       v1 v2 v3 v4 v5
    in common           v1 v2 v3 v4       sorted, only the two in the middle matter: say b ≤ c
    medians          the middle one of v0, b, c, and the middle one of b, c, v5

Here v0 stands for the column of every second value, v1 for the values behind these, and so on. So all pairs of windows
are worked out at once. Which minima and maxima there are depends on the width alone, not on values: a list of steps is
made once for each width. A window of 11 values takes 16 steps for each value, and one of 31 values 34.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from apiserver.events.model import Float64Array


def medians(values: Float64Array, width: int) -> Float64Array:
    """The median of each window's finite values; NaN if there are none.

    In place of values that are not finite, −∞ and ∞ take turns: once beginning with −∞, and once with ∞. Each window
    has as many of both or, in one of the two cases, one more of either. So the median is in the middle of what is found
    in the two cases. For example, the median of 3, nan, 5 is in the middle of these:

        3, −∞, 5    median 3
        3, ∞, 5     median 5
    """
    finite = np.isfinite(values)
    if finite.all():
        low, high = _middles(values, width)
        if low is high:
            return low
    else:
        turns = np.where(np.cumsum(~finite) % 2, np.inf, -np.inf)
        lows, highs = zip(*(_middles(np.where(finite, values, other), width) for other in (turns, -turns)), strict=True)
        low, high = np.maximum(*lows), np.minimum(*highs)
    with np.errstate(invalid="ignore"):
        return low / 2 + high / 2


def _middles(values: Float64Array, width: int) -> tuple[Float64Array, Float64Array]:
    """The value in the middle of each sorted window, twice; or with an even width, both."""
    plan = _plan(width)
    count = len(values) - width + 1
    rows = -(-count // plan.together)
    columns = _columns(values, rows, plan.together, width)
    known = dict(enumerate(columns))
    for function, one, other, number, done in plan.steps:
        known[number] = function(known[one], known[other])
        for old in done:
            del known[old]
    found = [np.stack([known[number] for number in numbers], axis=1).ravel()[:count] for numbers in plan.middles]
    return found[0], found[-1]


def _columns(values: Float64Array, rows: int, together: int, width: int) -> list[Float64Array]:
    """All values of the first windows, in order: the n-th column has every `together`-th value from value n on."""
    table = np.zeros((rows + -(-width // together), together))
    table.ravel()[: len(values)] = values
    offsets = np.ascontiguousarray(table.T)
    return [offsets[n % together, n // together :][:rows] for n in range(width + together - 1)]


class _Step(NamedTuple):
    """`number` is the least or the greatest of two numbered columns. Then the columns `done` are not needed again."""

    function: np.ufunc
    one: int
    other: int
    number: int
    done: Sequence[int]


class _Plan(NamedTuple):
    """How medians are found of windows that are worked out together."""

    together: int
    steps: Sequence[_Step]
    middles: Sequence[Sequence[int]]
    """The numbers of the columns in the middle of each window; with an even width, of the lower and the upper ones."""


@lru_cache
def _plan(width: int) -> _Plan:
    together = 1 << ((width + 1) // 2).bit_length() - 1  # with more, some would have too little in common
    network = _Network(width + together - 1)
    common = network.sorted(range(together - 1, width))
    middles = _narrowed(network, width, _middle(common, together + 1 - width % 2), 0, together)
    return _Plan(
        together,
        network.steps_to({number for window in middles for number in window}),
        list(zip(*middles, strict=True)),
    )


def _narrowed(network: _Network, width: int, common: list[int], first: int, count: int) -> list[list[int]]:
    """The middle of each of `count` windows from the `first` one on, given the middle of what they have in common."""
    if count == 1:
        return [common]
    half = count // 2
    before = network.sorted(range(first + half - 1, first + count - 1))
    behind = network.sorted(range(first + width, first + width + half))
    left, right = (_middle(network.merged(common, more), len(common) - half) for more in (before, behind))
    return _narrowed(network, width, left, first, half) + _narrowed(network, width, right, first + half, half)


def _middle(ordered: list[int], count: int) -> list[int]:
    start = (len(ordered) - count) // 2
    return ordered[start : start + count]


class _Network:
    """Steps that sort columns, by Batcher's odd-even merge (Knuth, The Art of Computer Programming 3, 5.3.4)."""

    def __init__(self, inputs: int) -> None:
        self._inputs = inputs
        self._steps: list[tuple[np.ufunc, int, int]] = []

    def sorted(self, columns: Sequence[int]) -> list[int]:
        """The columns' values in order: the first column has the least value of each row."""
        if len(columns) < 2:
            return list(columns)
        half = len(columns) // 2
        return self.merged(self.sorted(columns[:half]), self.sorted(columns[half:]))

    def merged(self, one: list[int], other: list[int]) -> list[int]:
        """Two sorted lists of columns as one."""
        if not one or not other:
            return one + other
        if len(one) == len(other) == 1:
            return self._ordered(one[0], other[0])
        first, *evens = self.merged(one[::2], other[::2])
        odds = self.merged(one[1::2], other[1::2])
        both = min(len(evens), len(odds))
        pairs = [number for pair in zip(odds, evens, strict=False) for number in self._ordered(*pair)]
        return [first, *pairs, *evens[both:], *odds[both:]]

    def _ordered(self, one: int, other: int) -> list[int]:
        number = self._inputs + len(self._steps)
        self._steps += [(np.minimum, one, other), (np.maximum, one, other)]
        return [number, number + 1]

    def steps_to(self, results: set[int]) -> list[_Step]:
        """The steps that lead to these columns; others were of no use."""
        needed, found = set(results), []
        for number, (function, one, other) in reversed(list(enumerate(self._steps, self._inputs))):
            if number in needed:
                found.append(_Step(function, one, other, number, [old for old in {one, other} if old not in needed]))
                needed |= {one, other}
        return found[::-1]

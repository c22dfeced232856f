"""Medians of each `width` neighbours of a long column, by minima and maxima of whole columns.

Neighbouring windows have most values in common. So some windows, a power of two, are worked out together: first what
all of them have in common, then what halves of them have in common, and so on. Values that cannot be a median any more
are left out on the way. For example, windows of 5 values, two together:

    first window     v0 v1 v2 v3 v4
    second window       v1 v2 v3 v4 v5
    in common           v1 v2 v3 v4       sorted, only the two in the middle matter: say b ≤ c
    medians          the middle one of v0, b, c, and the middle one of b, c, v5

Here v0 stands for the column of every second value, v1 for the values behind these, and so on. So all pairs of windows
are worked out at once. v2 is v0 one row later, and v3 and v4 are v1 and v2 one row later. So what sorts v1 and v2 need
not be done again for v3 and v4: it is taken one row later.

Which minima and maxima there are depends on the width alone, not on values: a list of steps is made once for each
width. A window of 11 values takes 11 steps for each value, and one of 31 values 22.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from apiserver.events.model import Float64Array

#: The most rows of windows that are worked out at a time. Twice as many would take more memory, and hardly less time.
_MOST_ROWS = 4096


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
    together = _plan(width).together
    count = len(values) - width + 1
    rows = -(-count // together)
    finder = _finders.of(width, min(1 << (rows - 1).bit_length(), _MOST_ROWS))
    found = np.empty((finder.middles, rows, together))
    for first in range(0, rows, finder.rows):
        finder.find(values[first * together :], found[:, first : first + finder.rows])
    ordered = [table.ravel()[:count] for table in found]
    return ordered[0], ordered[-1]


class _Finder:
    """Finds the medians of up to `rows` rows of windows at a time, again and again in the same memory.

    Memory for all columns and the list of all calls are made once: both would take about as long as the calls do. Other
    threads must not use it meanwhile.
    """

    def __init__(self, width: int, rows: int) -> None:
        plan = _plan(width)
        self.rows, self.middles = rows, len(plan.middles)
        self._together, length = plan.together, rows + plan.later
        self._inputs = np.zeros((plan.together, length))
        columns: dict[int, Float64Array] = dict(enumerate(self._inputs))
        memory: dict[int, Float64Array] = {}
        free: list[Float64Array] = []
        self._calls = []
        for function, (left_number, left_rows), (right_number, right_rows), number, done in plan.steps:
            left = columns[left_number] if left_rows is None else columns[left_number][left_rows]
            right = columns[right_number] if right_rows is None else columns[right_number][right_rows]
            memory[number] = free.pop() if free else np.empty(length)
            columns[number] = memory[number][: len(left)]
            self._calls.append((function, left, right, columns[number]))
            free += [memory[old] for old in done if old in memory]
        self._middle_columns = [[columns[number][later:] for number, later in middle] for middle in plan.middles]

    def find(self, values: Float64Array, found: Float64Array) -> None:
        """Fill `found`: a table for the lower middle of each window and, with an even width, one for the upper one.

        Behind the last value, columns have what they had before. No window that is asked for reaches there.
        """
        whole, rest = divmod(min(len(values), self._inputs.size), self._together)
        self._inputs[:, :whole] = values[: whole * self._together].reshape(whole, self._together).T
        self._inputs[:rest, whole : whole + 1] = values[whole * self._together :][:rest, np.newaxis]
        for function, left, right, out in self._calls:
            function(left, right, out=out)
        for table, columns in zip(found, self._middle_columns, strict=True):
            np.stack([column[: len(table)] for column in columns], axis=1, out=table)


class _Finders(threading.local):
    """The finders that a thread used last. One of the largest takes 3 MB."""

    def __init__(self) -> None:
        self.of = lru_cache(maxsize=2)(_Finder)


_finders = _Finders()


class _Column(NamedTuple):
    """A numbered column, from the row `later` on."""

    number: int
    later: int


class _Step(NamedTuple):
    """`number` is the least or the greatest of two columns. Then the columns `done` are not needed again.

    Of both columns, the rows to take are given; None: all.
    """

    function: np.ufunc
    one: tuple[int, slice | None]
    other: tuple[int, slice | None]
    number: int
    done: Sequence[int]


class _Plan(NamedTuple):
    """How medians are found of windows that are worked out together."""

    together: int
    later: int
    """Rows that columns need beyond those of the windows."""
    steps: Sequence[_Step]
    middles: Sequence[Sequence[_Column]]
    """The columns in the middle of each window; with an even width, the lower and the upper ones."""


@lru_cache
def _plan(width: int) -> _Plan:
    together = 1 << ((width + 1) // 2).bit_length() - 1  # with more, some would have too little in common
    network = _Network(together)
    common = network.sorted(range(together - 1, width))
    middles = _narrowed(network, width, _middle(common, together + 1 - width % 2), 0, together)
    return _Plan(
        together,
        (width + together - 2) // together,
        network.steps_to({column.number for window in middles for column in window}),
        list(zip(*middles, strict=True))[:: width % 2 + 1],
    )


def _narrowed(network: _Network, width: int, common: list[_Column], first: int, count: int) -> list[list[_Column]]:
    """The middle of each of `count` windows from the `first` one on, given the middle of what they have in common."""
    if count == 1:
        return [common]
    half = count // 2
    before = network.sorted(range(first + half - 1, first + count - 1))
    behind = network.sorted(range(first + width, first + width + half))
    left, right = (network.narrowed(common, more) for more in (before, behind))
    return _narrowed(network, width, left, first, half) + _narrowed(network, width, right, first + half, half)


def _middle(ordered: list[_Column], count: int) -> list[_Column]:
    start = (len(ordered) - count) // 2
    return ordered[start : start + count]


class _Network:
    """Steps that sort columns, by Batcher's merges (Knuth, The Art of Computer Programming 3, 5.3.4).

    Two sorted lists become one by the odd-even merge. Where only the middle of both is wanted, the bitonic one takes
    fewer steps, if one list is twice as long as the other.
    """

    def __init__(self, together: int) -> None:
        self._together = together
        self._steps: list[tuple[np.ufunc, _Column, _Column]] = []
        self._ordered_pairs: dict[tuple[_Column, _Column], int] = {}
        """The number of the lesser column of each pair that was ordered. The greater column has the next number."""

    def sorted(self, places: Sequence[int]) -> list[_Column]:
        """The values at these places of the first windows in order: the first column has the least of each row."""
        if len(places) < 2:
            return [_Column(place % self._together, place // self._together) for place in places]
        half = len(places) // 2
        return self.merged(self.sorted(places[:half]), self.sorted(places[half:]))

    def merged(self, left: list[_Column], right: list[_Column]) -> list[_Column]:
        """Two sorted lists of columns as one."""
        if not left or not right:
            return left + right
        if len(left) == len(right) == 1:
            return self._ordered(left[0], right[0])
        first, *evens = self.merged(left[::2], right[::2])
        odds = self.merged(left[1::2], right[1::2])
        both = min(len(evens), len(odds))
        pairs = [column for pair in zip(odds, evens, strict=False) for column in self._ordered(*pair)]
        return [first, *pairs, *evens[both:], *odds[both:]]

    def narrowed(self, left: list[_Column], right: list[_Column]) -> list[_Column]:
        """The middle of two sorted lists: as many columns as `left` has more than `right`."""
        half = len(right)
        if len(left) != 2 * half:
            return _middle(self.merged(left, right), len(left) - half)
        least = [self._ordered(*pair)[0] for pair in zip(left[half:], right[::-1], strict=True)]
        return self._straightened([self._ordered(*pair)[1] for pair in zip(left[:half], least, strict=True)])

    def _straightened(self, columns: list[_Column]) -> list[_Column]:
        """A list that rises and then falls, or any rotation of such a one, in order. Its length is a power of 2."""
        half = len(columns) // 2
        if not half:
            return columns
        pairs = [self._ordered(*pair) for pair in zip(columns[:half], columns[half:], strict=True)]
        return [column for part in zip(*pairs, strict=True) for column in self._straightened(list(part))]

    def _ordered(self, one: _Column, other: _Column) -> list[_Column]:
        later = min(one.later, other.later)
        pair = _Column(one.number, one.later - later), _Column(other.number, other.later - later)
        if pair not in self._ordered_pairs:
            self._ordered_pairs[pair] = self._together + len(self._steps)
            self._steps += [(np.minimum, *pair), (np.maximum, *pair)]
        number = self._ordered_pairs[pair]
        return [_Column(number, later), _Column(number + 1, later)]

    def steps_to(self, results: set[int]) -> list[_Step]:
        """The steps that lead to these columns; others were of no use."""
        fewer = [0] * self._together
        """How many rows each column has less than the table of values."""
        for _, left, right in self._steps:
            fewer.append(max(fewer[left.number] + left.later, fewer[right.number] + right.later))
        needed, steps = set(results), []
        for number, (function, left, right) in reversed(list(enumerate(self._steps, self._together))):
            if number in needed:
                taken, other_taken = (
                    (column.number, _rows(column, fewer[number] - fewer[column.number])) for column in (left, right)
                )
                done = [old for old in {left.number, right.number} if old not in needed]
                steps.append(_Step(function, taken, other_taken, number, done))
                needed |= {left.number, right.number}
        return steps[::-1]


def _rows(column: _Column, fewer: int) -> slice | None:
    """The rows of a column with which a column is made that has `fewer` rows; None: all."""
    return slice(column.later, column.later - fewer or None) if fewer else None

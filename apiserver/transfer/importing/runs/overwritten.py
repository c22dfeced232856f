"""Finds points that a later point of the same series overwrites, as it has the same step.

The steps of a series are kept in pieces. Most pieces have one distance between their steps, so that they take three
numbers each, however many steps they have:

    0 10 20 30      the piece (0, 40, 10)
    40 50 60        all of them are behind the last step: nothing to look for, and the piece is (0, 70, 10)
    30 40 70        30 and 40 were there: 2 points are overwritten
"""

from __future__ import annotations

import numpy as np

from apiserver.events.model import Float64Array, Int64Array

#: As many steps that came one by one become a piece.
_MOST_SINGLE = 10_000


class Repeated:
    """Counts the points of a series that say the same as the one before them, so that nothing is lost."""

    def __init__(self) -> None:
        self._step: int | None = None
        self._value = 0.0

    def add(self, steps: Int64Array, values: Float64Array) -> int:
        """Add points; returns how many have the step and the value of the one before. NaN equals NaN."""
        if not len(steps):
            return 0
        value = float(values[0])
        before = int(steps[0]) == self._step and (
            value == self._value or (value != value and self._value != self._value)
        )
        self._step, self._value = int(steps[-1]), float(values[-1])
        if len(steps) == 1:
            return int(before)
        last, next = values[:-1], values[1:]
        are_equal = (last == next) | (np.isnan(last) & np.isnan(next))
        return int(before) + int(np.count_nonzero(are_equal & (steps[:-1] == steps[1:])))


class Steps:
    """The steps of one series so far."""

    def __init__(self) -> None:
        self._pieces: list[range | Int64Array] = []
        """Each in order, without one step twice."""
        self._last = -(2**63) - 1
        self._single: list[int] = []
        """The last steps, if they came one by one, each behind all others: not in pieces yet."""

    def add(self, steps: Int64Array) -> int:
        """Add steps; returns how many points they overwrite, of those before and among themselves."""
        if len(steps) == 1 and (step := int(steps[0])) > self._last:
            self._last = step
            self._single.append(step)
            if len(self._single) >= _MOST_SINGLE:
                self._keep_single()
            return 0
        self._keep_single()
        new = steps if len(steps) < 2 or (steps[1:] > steps[:-1]).all() else np.unique(steps)
        if not len(new):
            return 0
        overwritten = len(steps) - len(new)
        if self._pieces and int(new[0]) <= self._last:
            before = self._among(new)
            overwritten += int(before.sum())
            new = new[~before]
        if len(new):
            self._keep(new)
            self._last = max(self._last, int(new[-1]))
        return overwritten

    def _keep_single(self) -> None:
        if self._single:
            self._keep(np.array(self._single, np.int64))
            self._single = []

    def _keep(self, steps: Int64Array) -> None:
        """Add a piece. Each piece has more than twice the steps of the next one, so there are few."""
        pieces = self._pieces
        pieces.append(_piece(steps))
        while len(pieces) > 1 and 2 * len(pieces[-1]) >= len(pieces[-2]):
            last = pieces.pop()
            pieces[-1] = _piece(np.union1d(_steps(pieces[-1]), _steps(last)))

    def _among(self, steps: Int64Array) -> np.typing.NDArray[np.bool_]:
        """Which of the steps were there before."""
        among = np.zeros(len(steps), bool)
        first, last = int(steps[0]), int(steps[-1])
        for piece in self._pieces:
            if int(piece[-1]) < first or int(piece[0]) > last:
                continue
            if isinstance(piece, range):
                inside = (steps >= piece.start) & (steps < piece.stop)
                among |= inside & ((steps - piece.start) % piece.step == 0)
            else:
                among |= np.isin(steps, piece, assume_unique=True)
        return among


def _steps(piece: range | Int64Array) -> Int64Array:
    return np.arange(piece.start, piece.stop, piece.step) if isinstance(piece, range) else piece


def _piece(steps: Int64Array) -> range | Int64Array:
    first, last = int(steps[0]), int(steps[-1])
    if len(steps) > 2 and last - first < 2**63:  # a greater difference is beyond 64 bits
        distances = np.diff(steps)
        if (distances == distances[0]).all():
            return range(first, last + 1, int(distances[0]))
    return steps.copy()

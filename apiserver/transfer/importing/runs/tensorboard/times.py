"""Times of events. A time that cannot be believed becomes the nearest one that can, and is counted."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np

from apiserver.events.model import Float64Array, Int64Array
from apiserver.transfer.importing.runs.times import UNKNOWN, believed

_IN_NAME = re.compile(r"tfevents\.(\d{9,11})\D")


def seconds_of(numbers: Float64Array) -> Float64Array:
    """Numbers as epoch seconds; NaN for a number that is no time."""
    found = believed(numbers)
    return np.where(found == UNKNOWN, np.nan, found / 1000)


def milliseconds_of(seconds: Float64Array) -> Int64Array:
    """Epoch seconds as timestamps."""
    return (seconds * 1000).round().astype(np.int64)


def time_of(path: Path) -> float:
    """When an event file was begun, as its name says, else when it was last changed; epoch seconds. Raises OSError."""
    said = _IN_NAME.search(path.name)
    begun = float(seconds_of(np.array([float(said[1])]))[0]) if said else np.nan
    return path.stat().st_mtime if np.isnan(begun) else begun


class Times:
    """The times of the events of a file."""

    def __init__(self, otherwise: float) -> None:
        """`otherwise`: epoch seconds for events before which there is no time that can be believed."""
        self._last = otherwise
        self._odd: Counter[str] = Counter()

    def of(self, name: str, numbers: Float64Array) -> Float64Array:
        """The times of the events named `name`, at least one, as epoch seconds."""
        seconds = seconds_of(numbers)
        valid = np.flatnonzero(~np.isnan(seconds))
        if len(valid) < len(seconds):
            self._odd[name] += len(seconds) - len(valid)
            if not len(valid):
                return np.full(len(seconds), self._last)
            before = np.searchsorted(valid, np.arange(len(seconds)), side="right") - 1
            seconds = seconds[valid[np.maximum(before, 0)]]
        self._last = float(seconds[-1])
        return seconds

    def one(self, name: str, number: float) -> float:
        """The time of one event, as epoch seconds."""
        return float(self.of(name, np.array([number]))[0])

    def take_odd(self) -> list[tuple[str, int]]:
        """How many impossible times each name had since the last call."""
        odd = list(self._odd.items())
        self._odd.clear()
        return odd

"""Curves of the kinds that trainings report, as columns: what compresses depends on the values.

Each kind of values fills five series. Timestamps are 137 ms apart with 40 ms of jitter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from apiserver.events.model import EventBatch, Owner, Scalars
from apiserver.stores.events.codec import pco
from benchmarks.bodies import START_MS

SERIES, BATCH = 5, 2000
_EVERY_MS, _JITTER_MS = 137, 40

Values = npt.NDArray[np.float64]
Kind = Callable[[np.random.Generator, int], Values]
#: Values and timestamps of each series.
Columns = list[tuple[Values, npt.NDArray[np.int64]]]


def _losses(random: np.random.Generator, count: int) -> Values:
    curve = 2 * np.exp(-np.arange(count) * 7 / count) + 0.3 + 0.05 * random.standard_normal(count)
    return curve.astype(np.float32).astype(np.float64)


def _decimals(random: np.random.Generator, count: int) -> Values:
    return np.round(np.exp(-np.arange(count) * 4 / count) + 0.05 * random.standard_normal(count), 4)


def _cosine(random: np.random.Generator, count: int) -> Values:
    return 0.5e-3 * (1 + np.cos(np.pi * np.arange(count) / count))


def _accuracies(random: np.random.Generator, count: int) -> Values:
    curve = (1 - np.exp(-np.arange(count) * 4 / count)) * 200 + 30 * random.standard_normal(count)
    return np.clip(np.round(curve), 0, 256) / 256


def _uniform(random: np.random.Generator, count: int) -> Values:
    return random.random(count)


KINDS: dict[str, Kind] = {
    "losses": _losses,
    "decimals": _decimals,
    "cosine": _cosine,
    "accuracies": _accuracies,
    "uniform": _uniform,
}


def columns_of(kind: Kind, count: int) -> Columns:
    """Values and timestamps of each series."""
    found = []
    for number in range(SERIES):
        random = np.random.default_rng(number)
        jitter = np.round(random.uniform(-_JITTER_MS, _JITTER_MS, count)).astype(np.int64)
        found.append((kind(random, count), START_MS + np.cumsum(_EVERY_MS + jitter)))
    return found


def batches_of(owner: Owner, columns: Columns) -> Iterator[EventBatch]:
    """Batches of one series each, as they come while a run goes on."""
    for first in range(0, len(columns[0][0]), BATCH):
        for number, (values, times) in enumerate(columns):
            some = slice(first, min(first + BATCH, len(values)))
            scalars = Scalars(
                owners=[owner],
                owner=[0],
                metrics=["m"],
                variants=[str(number)],
                workers=["worker"],
                labels=[None],
                lengths=[some.stop - first],
                iters=np.arange(first, some.stop),
                timestamps=times[some],
                values=values[some],
            )
            yield EventBatch(int(times[some][-1]), scalars)


def compressed_bytes(columns: Columns) -> int:
    """What pcodec alone makes of the values and timestamps."""
    return sum(len(pco.encode(column)) for pair in columns for column in (_narrow(pair[0]), pair[1]))


def _narrow(values: Values) -> npt.NDArray[Any]:
    narrow = values.astype(np.float32)
    return narrow if np.array_equal(narrow.astype(np.float64), values) else values

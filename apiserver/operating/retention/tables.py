"""Events that are due, as batches of a table: this is how an archive has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from apiserver.events.file_urls import urls_in
from apiserver.events.model import SAMPLE_TYPES, EventType, LogLine, Sample
from apiserver.stores.events.codec.points import WholePoints
from apiserver.tables.table import Batch, Column, Kind, Repeated, Values

_SERIES = (Column("metric", Kind.TEXT), Column("variant", Kind.TEXT), Column("iter", Kind.INT))
_SAMPLE = (*_SERIES, Column("key", Kind.TEXT), Column("timestamp", Kind.TIME), Column("document", Kind.JSON))
#: The columns of each type in an archive.
COLUMNS: dict[EventType, tuple[Column, ...]] = {
    EventType.SCALAR: (
        *(*_SERIES, Column("timestamp", Kind.TIME), Column("value", Kind.FLOAT)),
        *(Column("worker", Kind.TEXT), Column("received", Kind.TIME)),
    ),
    EventType.LOG: (
        *(Column("timestamp", Kind.TIME), Column("sequence", Kind.INT), Column("worker", Kind.TEXT)),
        *(Column("level", Kind.TEXT), Column("msg", Kind.TEXT), *_SERIES),
        *(Column("received", Kind.TIME), Column("extra", Kind.JSON)),
    ),
    **dict.fromkeys(SAMPLE_TYPES, _SAMPLE),
}


@dataclass(slots=True)
class Part:
    """Some events that are due, as a batch of a table."""

    batch: Batch
    bytes: int
    """Of texts and documents."""
    oldest: int
    newest: int
    urls: set[str] = field(default_factory=set)
    """The URLs of the files that the events show."""


def of_points(series: Sequence[WholePoints]) -> Part:
    """The points of at least one series."""
    times = [points.points.timestamps for points in series]
    oldest, newest = min(int(of.min()) for of in times), max(int(of.max()) for of in times)
    return Part(_batch_of_points(series), 0, oldest, newest)


def _batch_of_points(series: Sequence[WholePoints]) -> Batch:
    lengths = [len(points.points.iters) for points in series]
    codes = np.repeat(np.arange(len(series), dtype=np.int32), lengths)
    names: list[str] = []
    workers = []
    for points in series:
        numbers, places = np.unique(points.points.workers, return_inverse=True)
        workers.append(places.astype(np.int32) + np.int32(len(names)))
        names += [points.workers[number] for number in numbers.tolist()]
    columns: list[Values] = [
        Repeated(codes, [points.series[0] for points in series]),
        Repeated(codes, [points.series[1] for points in series]),
        np.concatenate([points.points.iters for points in series]),
        np.concatenate([points.points.timestamps for points in series]),
        np.concatenate([points.points.values for points in series]),
        Repeated(np.concatenate(workers), names),
        np.concatenate([points.points.received for points in series]),
    ]
    return Batch(sum(lengths), columns)


def of_lines(lines: Sequence[LogLine]) -> Part:
    """Log lines in their order, at least one."""
    columns: list[Values] = [
        [line.position.timestamp for line in lines],
        [line.position.sequence for line in lines],
        [line.worker for line in lines],
        [line.level for line in lines],
        [line.message for line in lines],
        [line.metric for line in lines],
        [line.variant for line in lines],
        [line.iter for line in lines],
        [line.received for line in lines],
        [line.extra for line in lines],
    ]
    size = sum([len(line.message) for line in lines])
    return Part(Batch(len(lines), columns), size, lines[0].position.timestamp, lines[-1].position.timestamp)


def of_samples(samples: Sequence[Sample]) -> Part:
    """Vectors, images or plots, at least one."""
    columns: list[Values] = [
        [sample.metric for sample in samples],
        [sample.variant for sample in samples],
        [sample.iter for sample in samples],
        [sample.key for sample in samples],
        [sample.timestamp for sample in samples],
        [sample.document for sample in samples],
    ]
    times, size = [sample.timestamp for sample in samples], sum([len(sample.document) for sample in samples])
    return Part(Batch(len(samples), columns), size, min(times), max(times), urls_in(samples))

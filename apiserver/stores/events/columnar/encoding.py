"""Makes blocks of points, and points of blocks.

A fragment has the first two of these columns, a chunk has all. Inside, they are what `columns/` makes:

    curve     iterations and values
    details   the workers' names, then timestamps, workers by number, and times of receipt
    sums      sums of neighbouring points, for long histograms
    spans     how many points each worker reported, and when the first and the last of them
    stats     statistics of all points

The id of a fragment is made of its series and its points, so a batch that is sent again makes no second one.
"""

from __future__ import annotations

import hashlib
import os
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import orjson

from apiserver.events.model import Int64Array, Owner, Scalars
from apiserver.stores.events.columnar.blocks import Block, Columns, NewBlock, Statement
from apiserver.stores.events.columnar.stretches import BlockPart
from apiserver.stores.events.columns import chunks, pieces, reports, stats
from apiserver.stores.events.columns.checked import Kind, Place, decoder, unwrap, wrap
from apiserver.stores.events.columns.names import Name
from apiserver.stores.events.columns.pieces import ColumnNames, Pieces
from apiserver.stores.events.columns.points import Curve, Points, TimedCurve, by_series, take
from apiserver.stores.events.columns.points import curve_of as curve_of_points
from apiserver.stores.events.columns.reports import Span
from apiserver.stores.events.columns.stats import StatsArray
from apiserver.stores.events.columns.whole import WholePoints

CURVE, DETAILS, SUMS, SPANS, STATS = "curve", "details", "sums", "spans", "stats"
#: The columns that have whole points.
WHOLE = (CURVE, DETAILS)

#: The most points of a block.
LARGEST = chunks.LARGEST_SEALED
#: A chunk of so many points is encoded in few bytes: it will hardly be made anew.
SEALED = LARGEST // 2

_HASH, _DIGEST = 12, 12
_LENGTH = 4


class Workers:
    """Numbers for names of workers, the same for all blocks of a read."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}

    def numbers(self, names: Sequence[str]) -> Int64Array:
        """The number of each name."""
        for name in names:
            if name not in self._numbers:
                self._numbers[name] = len(self.names)
                self.names.append(name)
        return np.array([self._numbers[name] for name in names], np.int64)


def fragments(scalars: Scalars, received: int) -> list[NewBlock]:
    """Fragments for each series of a batch. Of points with the same iteration, the last one is kept."""
    if not scalars:
        return []
    workers = Workers()
    numbers: dict[tuple[int, str, str], int] = {}
    names = zip(scalars.owner, scalars.metrics, scalars.variants, strict=True)
    groups = np.array([numbers.setdefault(name, len(numbers)) for name in names])
    points = Points(
        scalars.iters,
        scalars.values,
        scalars.timestamps,
        np.repeat(workers.numbers(scalars.workers), scalars.lengths),
        np.full(len(scalars.iters), received, np.int64),
    )
    points, starts = by_series(np.repeat(groups, scalars.lengths), points)
    made = []
    for (owner, *name), ends in zip(numbers, pairwise([*starts.tolist(), len(points.iters)]), strict=True):
        some = WholePoints((name[0], name[1]), take(points, slice(*ends)), workers.names)
        made += fragments_of(scalars.owners[owner], some)
    return made


def fragments_of(owner: Owner, some: WholePoints) -> list[NewBlock]:
    """Fragments with points of a series."""
    return [_fragment(owner, some.series, part, some.workers) for part in _even_parts(some.points)]


def _even_parts(points: Points) -> Iterator[Points]:
    """Parts of like size, of up to LARGEST points."""
    count = len(points.iters)
    edges = np.linspace(0, count, -(-count // LARGEST) + 1).astype(int).tolist()
    return (take(points, slice(*ends)) for ends in pairwise(edges))


def _fragment(owner: Owner, series: Name, points: Points, workers: Sequence[str]) -> NewBlock:
    points, workers = _own_workers(points, workers)
    digest = hashlib.blake2b(orjson.dumps(workers), digest_size=_DIGEST)
    for column in points[:4]:  # not the time of receipt, which differs if the batch is sent again
        digest.update(np.ascontiguousarray(column).data)
    id = _series_id(owner, series) + _text(digest.digest())
    first, last, count = int(points.iters[0]), int(points.iters[-1]), len(points.iters)
    return NewBlock(owner, series, id, first, last, count, _columns(id, points, workers, sealed=False))


def chunks_of(owner: Owner, some: WholePoints, ends: tuple[int, int], up_to: int, newest: int | None) -> list[NewBlock]:
    """Chunks of like size with these points. Together they cover all iterations from ends[0] to ends[1]."""
    parts = list(_even_parts(some.points))
    firsts = [ends[0], *(int(part.iters[0]) for part in parts[1:])]
    lasts = [*(first - 1 for first in firsts[1:]), ends[1]]
    return [
        _chunk(owner, some.series, first, last, part, some.workers, Statement(up_to, newest, 0))
        for first, last, part in zip(firsts, lasts, parts, strict=True)
    ]


def _chunk(
    owner: Owner, series: Name, first: int, last: int, points: Points, workers: Sequence[str], statement: Statement
) -> NewBlock:
    points, workers = _own_workers(points, workers)
    iters, values, *_ = points
    id = _series_id(owner, series) + _text(os.urandom(_DIGEST))
    shift = pieces.shift_of(int(iters[0]), int(iters[-1]), len(iters), sealed=True)
    (sums,) = pieces.blocks_of(iters, values, np.zeros(1, np.intp), [shift])
    columns = {
        **_columns(id, points, workers, sealed=len(iters) >= SEALED),
        SUMS: wrap(pieces.encode_blocks(sums), _place(id)),
        SPANS: wrap(_encoded_spans(points, workers), _place(id)),
        STATS: wrap(stats.of_points(points).tobytes(), _place(id)),
    }
    return NewBlock(owner, series, id, first, last, len(iters), columns, statement._replace(shift=shift))


def _encoded_spans(points: Points, workers: Sequence[str]) -> bytes:
    spans = reports.spans_of(points.timestamps, points.workers)
    return orjson.dumps([(workers[number], *span) for number, span in spans])


def _own_workers(points: Points, workers: Sequence[str]) -> tuple[Points, Sequence[str]]:
    """The same with only those workers that reported some of the points."""
    used, numbers = np.unique(points.workers, return_inverse=True)
    return points._replace(workers=numbers.astype(np.int64)), [workers[number] for number in used.tolist()]


def _series_id(owner: Owner, series: Name) -> str:
    return _text(hashlib.blake2b(orjson.dumps([*owner, *series]), digest_size=_HASH).digest())


def _text(some: bytes) -> str:
    return urlsafe_b64encode(some).decode()


def _columns(id: str, points: Points, workers: Sequence[str], *, sealed: bool) -> dict[str, bytes]:
    return {
        CURVE: curve_column(id, curve_of_points(points), sealed=sealed),
        DETAILS: details_column(id, points, workers, sealed=sealed),
    }


def curve_column(id: str, curve: Curve, *, sealed: bool = False) -> bytes:
    """Iterations and values as a column of the block with this id."""
    return wrap(chunks.encode_curve(*curve, sealed=sealed), _place(id))


def details_column(id: str, points: Points, workers: Sequence[str], *, sealed: bool = False) -> bytes:
    """What else there is of points as a column of the block with this id; `workers` are the names of all workers."""
    names, details = orjson.dumps(workers), chunks.encode_details(*points[2:], sealed=sealed)
    return len(names).to_bytes(_LENGTH, "big") + names + wrap(details, _place(id))


def _place(id: str) -> Place:
    """What a checksum belongs to: the block with this id, which is said in eight bytes."""
    hashed = hashlib.blake2b(id.encode(), digest_size=8).digest()
    return Place(Kind.CHUNK, int.from_bytes(hashed, "big", signed=True))


@decoder
def points_of(part: BlockPart, columns: Columns, workers: Workers) -> Points:
    """The points of a part of a block. `workers` gives numbers to their workers."""
    names, details = _split(columns[DETAILS])
    points = chunks.decode_points(part.block.count, columns[CURVE], details, part.first, part.last)
    return points._replace(workers=workers.numbers(orjson.loads(names))[points.workers])


def _split(details: bytes) -> tuple[bytes, bytes]:
    """The workers' names, and the encoded columns."""
    end = _LENGTH + int.from_bytes(details[:_LENGTH], "big")
    return details[_LENGTH:end], details[end:]


def curves_of(blocks: Sequence[tuple[Block, Columns]]) -> Curve:
    """Iterations and values of all of the blocks, one block after another; there must be at least one block."""
    return chunks.decode_curves([(block.count, columns[CURVE]) for block, columns in blocks])


@decoder
def timed_curves_of(blocks: Sequence[tuple[Block, Columns]]) -> TimedCurve:
    """The same with timestamps."""
    bodies = [(block.count, columns[CURVE], _split(columns[DETAILS])[1]) for block, columns in blocks]
    return TimedCurve(*curves_of(blocks), chunks.decode_reports(bodies).timestamps)


def curve_of(part: BlockPart, columns: Columns) -> Curve:
    """Iterations and values of a part of a block."""
    return chunks.decode_curve(part.block.count, columns[CURVE], part.first, part.last)


@decoder
def sums_of(columns: Sequence[Columns], names: ColumnNames) -> Pieces:
    """The sums of neighbouring points of adjacent chunks; there must be at least one chunk."""
    return pieces.decode_blocks([unwrap(some[SUMS]) for some in columns], names)


@decoder
def spans_of(columns: Columns) -> list[tuple[str, Span]]:
    """The span of each worker's points in a chunk."""
    return [(worker, Span(*span)) for worker, *span in orjson.loads(unwrap(columns[SPANS]))]


def stats_of(columns: Sequence[Columns]) -> StatsArray:
    """The stats of chunks, a row for each."""
    return stats.stored([unwrap(some[STATS]) for some in columns])

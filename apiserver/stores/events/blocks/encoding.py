"""Makes blocks of points, and points of blocks.

A fragment has the first two of these columns, a chunk has all. Inside, they are what `codec/` makes:

    curve     iterations and values
    details   the workers' names, then timestamps, workers by number, and times of receipt
    sums      sums of neighbouring points, for long histograms
    spans     how many points each worker reported, and when the first and the last of them
    stats     statistics of all points

The id of a fragment is made of its series and its points, so a batch that is sent again makes no second one.

Fragments of up to `short_points` are put together into bundles (`blocks.py`), as each document has a fixed cost, and
each column, too: a batch of 100 points in ten series becomes one document of two columns.
"""

from __future__ import annotations

import hashlib
import os
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import orjson

from apiserver.events.model import Owner, Scalars
from apiserver.stores.events.blocks.blocks import NO_SERIES, Block, Columns, Member, NewBlock, Statement
from apiserver.stores.events.blocks.bounds import ColumnarBounds
from apiserver.stores.events.blocks.precedence import BlockPart
from apiserver.stores.events.codec import chunks, pieces, reports, stats
from apiserver.stores.events.codec.checked import Place, decoder, unwrap, wrap
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.codec.pieces import ColumnNames, Pieces
from apiserver.stores.events.codec.points import Columns as Made
from apiserver.stores.events.codec.points import (
    Curve,
    Points,
    TimedCurve,
    WholePoints,
    Workers,
    by_series,
    concat,
    even_parts,
    take,
    within,
)
from apiserver.stores.events.codec.points import curve_of as curve_of_points
from apiserver.stores.events.codec.reports import Span
from apiserver.stores.events.codec.stats import StatsArray

CURVE, DETAILS, SUMS, SPANS, STATS = COLUMNS = ("curve", "details", "sums", "spans", "stats")
#: The columns that have whole points.
WHOLE = (CURVE, DETAILS)
#: The columns of chunks that charts over iterations and summaries are made of.
OF_CHARTS = (CURVE, SUMS, STATS)

_HASH, _DIGEST = 12, 12
_LENGTH = 4


def fragments(scalars: Scalars, received: int, bounds: ColumnarBounds) -> list[NewBlock]:
    """Fragments for each series of a batch. Of points with the same iteration, the last one is kept."""
    if not scalars:
        return []
    workers = Workers()
    names = [*zip(scalars.owner, scalars.metrics, scalars.variants, strict=True)]
    numbers = {name: number for number, name in enumerate(sorted(dict.fromkeys(names), key=itemgetter(0)))}
    groups = np.array([numbers[name] for name in names])
    points = Points(
        scalars.iters,
        scalars.values,
        scalars.timestamps,
        np.repeat(workers.numbers(scalars.workers), scalars.lengths),
        np.full(len(scalars.iters), received, np.int64),
    )
    points, starts = by_series(np.repeat(groups, scalars.lengths), points)
    edges = [*starts.tolist(), len(points.iters)]
    counts = np.diff(edges)
    series = [(metric, variant) for _, metric, variant in numbers]
    ends = (points.iters[starts].tolist(), points.iters[starts + counts - 1].tolist())
    members = [*map(Member, series, *ends, counts.tolist())]
    owners = [owner for owner, *_ in numbers]
    made: list[NewBlock] = []
    for begin, end in _together(owners, counts.tolist(), bounds):
        owner, points_of_owner = scalars.owners[owners[begin]], take(points, slice(edges[begin], edges[end]))
        if end - begin > 1:
            made.append(_bundle(owner, members[begin:end], points_of_owner, workers.names))
        else:
            made += fragments_of(owner, WholePoints(members[begin].series, points_of_owner, workers.names), bounds)
    return made


def fragments_of(owner: Owner, some: WholePoints, bounds: ColumnarBounds) -> list[NewBlock]:
    """Fragments with points of a series."""
    return [_fragment(owner, some.series, part, some.workers) for part in even_parts(some.points, bounds.block_points)]


def _together(owners: Sequence[int], counts: Sequence[int], bounds: ColumnarBounds) -> Iterator[tuple[int, int]]:
    """Runs of series that are put together: the number of the first one, and that behind the last one."""
    short, most, most_series = bounds.short_points, bounds.bundle_points, bounds.bundle_series
    begin, size = 0, counts[0]
    for number in range(1, len(counts)):
        before, count = counts[number - 1], counts[number]
        if (
            owners[number] == owners[begin]
            and before <= short >= count
            and size + count <= most
            and number - begin < most_series
        ):
            size += count
        else:
            yield begin, number
            begin, size = number, count
    yield begin, len(counts)


def _fragment(owner: Owner, series: Name, points: Points, workers: Sequence[str]) -> NewBlock:
    points, workers = _own_workers(points, workers)
    id = _hashed([*owner, *series]) + _digest(points, workers)
    first, last, count = int(points.iters[0]), int(points.iters[-1]), len(points.iters)
    return NewBlock(owner, series, id, first, last, count, _columns(id, points, workers, sealed=False))


def _bundle(owner: Owner, members: Sequence[Member], points: Points, workers: Sequence[str]) -> NewBlock:
    """The points of all members, one series after another."""
    points, workers = _own_workers(points, workers)
    id = _hashed([*owner, *map(tuple, members)]) + _digest(points, workers)
    first, last = min([one.first for one in members]), max([one.last for one in members])
    columns = _columns(id, points, workers, sealed=False)
    return NewBlock(owner, NO_SERIES, id, first, last, len(points.iters), columns, members=members)


def _digest(points: Points, workers: Sequence[str]) -> str:
    digest = hashlib.blake2b(orjson.dumps(workers), digest_size=_DIGEST)
    for column in points[:4]:  # not the time of receipt, which differs if the batch is sent again
        digest.update(np.ascontiguousarray(column).data)
    return _text(digest.digest())


def chunks_of(
    owner: Owner,
    whole_points: WholePoints,
    ends: tuple[int, int],
    up_to: int,
    newest: int | None,
    bounds: ColumnarBounds,
) -> list[NewBlock]:
    """Chunks of like size with these points. Together they cover all iterations from ends[0] to ends[1]."""
    parts, sealed = even_parts(whole_points.points, bounds.block_points), bounds.sealed_points
    firsts = [ends[0], *(int(part.iters[0]) for part in parts[1:])]
    lasts = [*(first - 1 for first in firsts[1:]), ends[1]]
    return [
        _chunk(owner, whole_points.series, first, last, part, whole_points.workers, Statement(up_to, newest, 0), sealed)
        for first, last, part in zip(firsts, lasts, parts, strict=True)
    ]


def _chunk(
    owner: Owner,
    series: Name,
    first: int,
    last: int,
    points: Points,
    workers: Sequence[str],
    statement: Statement,
    sealed: int,
) -> NewBlock:
    points, workers = _own_workers(points, workers)
    iters, values, *_ = points
    id = _hashed([*owner, *series]) + _text(os.urandom(_DIGEST))
    shift = pieces.shift_of(int(iters[0]), int(iters[-1]), len(iters), pieces.POINTS_A_SEALED_BLOCK)
    (sums,) = pieces.blocks_of(iters, values, np.zeros(1, np.intp), [shift])
    spans = [(workers[number], *span) for number, span in reports.spans_of(points.timestamps, points.workers)]
    columns = {
        **_columns(id, points, workers, sealed=len(iters) >= sealed),
        SUMS: wrap(pieces.encode_blocks(sums), Place.of(id)),
        SPANS: wrap(orjson.dumps(spans), Place.of(id)),
        STATS: wrap(stats.of_points(points).tobytes(), Place.of(id)),
    }
    return NewBlock(owner, series, id, first, last, len(iters), columns, statement._replace(shift=shift))


def _own_workers(points: Points, workers: Sequence[str]) -> tuple[Points, Sequence[str]]:
    """The same with only those workers that reported some of the points."""
    if (points.workers == points.workers[0]).all():
        return points._replace(workers=np.zeros(len(points.workers), np.int64)), [workers[points.workers[0]]]
    used, numbers = np.unique(points.workers, return_inverse=True)
    return points._replace(workers=numbers.astype(np.int64)), [workers[number] for number in used.tolist()]


def _hashed(names: Sequence[Any]) -> str:
    return _text(hashlib.blake2b(orjson.dumps(names), digest_size=_HASH).digest())


def _text(some: bytes) -> str:
    return urlsafe_b64encode(some).decode()


def _columns(id: str, points: Points, workers: Sequence[str], *, sealed: bool) -> dict[str, bytes]:
    return {
        CURVE: curve_column(id, curve_of_points(points), sealed=sealed),
        DETAILS: details_column(id, points, workers, sealed=sealed),
    }


def curve_column(id: str, curve: Curve, *, sealed: bool = False) -> bytes:
    """Iterations and values as a column of the block with this id."""
    return wrap(chunks.encode_curve(*curve, sealed=sealed), Place.of(id))


def details_column(id: str, points: Points, workers: Sequence[str], *, sealed: bool = False) -> bytes:
    """What else there is of points as a column of the block with this id; `workers` are the names of all workers."""
    names, details = orjson.dumps(workers), chunks.encode_details(*points[2:], sealed=sealed)
    return len(names).to_bytes(_LENGTH, "big") + names + wrap(details, Place.of(id))


@decoder
def points_of(part: BlockPart, columns: Columns, workers: Workers, bundles: dict[str, Points]) -> Points:
    """The points of a part of a block. `workers` gives numbers to their workers.

    `bundles` has the points of bundles that were decoded before, by id, and gets those of this one.
    """
    names, details = _split(columns[DETAILS])
    bundle = part.block.in_bundle
    if bundle is None:
        points = chunks.decode_points(part.block.count, columns[CURVE], details, part.first, part.last)
    else:
        points = _in_part(part, bundles, lambda: chunks.decode_points(bundle.points, columns[CURVE], details))
    return points._replace(workers=workers.numbers(orjson.loads(names))[points.workers])


def _split(details: bytes) -> tuple[bytes, bytes]:
    """The workers' names, and the encoded columns."""
    end = _LENGTH + int.from_bytes(details[:_LENGTH], "big")
    return details[_LENGTH:end], details[end:]


def _is_bundled(one: tuple[Block, Columns]) -> bool:
    return one[0].in_bundle is not None


def _in_part(part: BlockPart, bundles: dict[str, Made], decoded: Callable[[], Made]) -> Made:
    """The points of a part of a block in a bundle, which is decoded once for all its series."""
    id = part.block.id
    if id not in bundles:
        bundles[id] = decoded()
    return within(_own(part.block, bundles[id]), part.first, part.last)


def _own(block: Block, bundle: Made) -> Made:
    """The points of a block, of all points of its bundle."""
    assert block.in_bundle is not None
    return take(bundle, slice(block.in_bundle.start, block.in_bundle.start + block.count))


def curves_of(blocks: Sequence[tuple[Block, Columns]]) -> Curve:
    """Iterations and values of all of the blocks, one block after another; there must be at least one block."""
    return _of_each(blocks, lambda some: chunks.decode_curves([(count, curve[CURVE]) for count, curve in some]))


def timed_curves_of(blocks: Sequence[tuple[Block, Columns]]) -> TimedCurve:
    """The same with timestamps."""

    def decoded(some: Sequence[tuple[int, Columns]]) -> TimedCurve:
        curve = chunks.decode_curves([(count, columns[CURVE]) for count, columns in some])
        bodies = [(count, columns[CURVE], _split(columns[DETAILS])[1]) for count, columns in some]
        return TimedCurve(*curve, chunks.decode_reports(bodies).timestamps)

    return _of_each(blocks, decoded)


@decoder
def _of_each(blocks: Sequence[tuple[Block, Columns]], decoded: Callable[[Sequence[tuple[int, Columns]]], Made]) -> Made:
    """What is decoded of the blocks, one after another. A bundle is decoded once."""
    bundles: dict[str, Made] = {}
    points: list[Made] = []
    for neighbours in (list(group) for _, group in groupby(blocks, _is_bundled)):
        if not _is_bundled(neighbours[0]):
            points.append(decoded([(block.count, columns) for block, columns in neighbours]))
            continue
        for block, columns in neighbours:
            assert block.in_bundle is not None
            if block.id not in bundles:
                bundles[block.id] = decoded([(block.in_bundle.points, columns)])
            points.append(_own(block, bundles[block.id]))
    return concat(points)


def curve_of(part: BlockPart, columns: Columns, bundles: dict[str, Curve]) -> Curve:
    """Iterations and values of a part of a block; `bundles` as in `points_of`."""
    bundle = part.block.in_bundle
    if bundle is None:
        return chunks.decode_curve(part.block.count, columns[CURVE], part.first, part.last)
    return _in_part(part, bundles, lambda: chunks.decode_curves([(bundle.points, columns[CURVE])]))


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

"""Reads log lines from blocks and memtables: pages in (timestamp, sequence) order, and counts."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from apiserver.events.model import EventType, Int64Array, LogLine, LogPosition, Owner
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.base import TIMESTAMP_BYTES, bytes_of_all, page_of, whole_timestamps_of
from apiserver.stores.events.columns import lines as codec
from apiserver.stores.events.columns.lines import LogPart
from apiserver.stores.events.columns.log_pages import PageOfLines, WantedLines
from apiserver.stores.events.columns.names import Name, matcher
from apiserver.stores.events.embedded import log_sizes
from apiserver.stores.events.embedded.names import owner_id, series_ids, series_rows

_AHEAD = "FROM log_blocks WHERE owner = ? AND (last_time, last_sequence) > (?, ?) ORDER BY last_time, last_sequence"
_BACK = (
    "FROM log_blocks WHERE owner = ? AND (last_time, last_sequence) < (?, ?)"
    " ORDER BY last_time DESC, last_sequence DESC"
)
#: How many hot lines are made before their bytes are counted.
_AT_ONCE = 1000
_BEGIN = LogPosition(-(2**63), -1)
_END = LogPosition(2**63 - 1, 2**63 - 1)


def page(
    conn: sqlite3.Connection, owner: Owner, hot: Sequence[Sequence[LogPart]], wanted: WantedLines
) -> list[LogLine]:
    """A page, as `EventStore.log_lines` describes it."""
    if wanted.limit < 1:
        return []
    parts = [part for table in hot for part in table]
    found, goes_on = _page(conn, owner, parts, wanted)
    if goes_on and wanted.whole:
        return (
            whole_timestamps_of(found) or _page(conn, owner, parts, wanted._replace(most=TIMESTAMP_BYTES, limit=1))[0]
        )
    return found


def _page(
    conn: sqlite3.Connection, owner: Owner, hot: Sequence[LogPart], wanted: WantedLines
) -> tuple[list[LogLine], bool]:
    """The page, and whether it was cut because of its bytes."""
    found, size = _merged_lines(conn, owner, wanted)
    recent, size_of_recent = _hot_lines(hot, wanted)
    if recent:
        found = sorted(found + recent, key=lambda line: line.position, reverse=wanted.descending)
        found = found[: wanted.end(np.array([line.position.timestamp for line in found], np.int64))]
    is_large = size + size_of_recent >= wanted.most
    return (page_of(found, wanted.most), True) if is_large else (found, False)


def _merged_lines(conn: sqlite3.Connection, owner: Owner, wanted: WantedLines) -> tuple[list[LogLine], int]:
    """The page if there were only merged lines, and its bytes. It ends with the block that brings it to `most`."""
    names = {id: name for name, id in series_ids(conn, SeriesQuery(owner, EventType.LOG)).items()}
    selected = {id for id, name in names.items() if wanted.matches is None or wanted.matches(*name)}
    number = owner_id(conn, owner)
    page = PageOfLines(wanted)
    if number is not None and selected:
        for body in _bodies(conn, number, selected, wanted):
            if page.add(codec.decode(body, names)):
                break
    return page.lines(), page.size


def _bodies(conn: sqlite3.Connection, owner: int, selected: Collection[int], wanted: WantedLines) -> Iterator[bytes]:
    """All blocks with selected lines beyond `after`, and perhaps other blocks, in walking order."""
    if not wanted.descending:
        cursors = [conn.execute(f"SELECT names, sizes, body {_AHEAD}", (owner, *(wanted.after or _BEGIN)))]
    else:
        # As blocks are disjoint, only the first block that ends at `after` or later can begin before it.
        at = wanted.after or _END
        straddling = conn.execute(
            "SELECT names, sizes, body FROM log_blocks WHERE owner = ? AND (last_time, last_sequence) >= (?, ?)"
            " ORDER BY last_time, last_sequence LIMIT 1",
            (owner, *at),
        )
        cursors = [straddling, conn.execute(f"SELECT names, sizes, body {_BACK}", (owner, *at))]
    for cursor in cursors:
        for names, sizes, body in cursor:
            of_others = wanted.workers is not None and sizes and wanted.workers.isdisjoint(log_sizes.workers(sizes))
            if not of_others and not selected.isdisjoint(msgspec.msgpack.decode(names)):  # type: ignore[attr-defined]
                yield body


def blocks_ahead(conn: sqlite3.Connection, owner: Owner, after: LogPosition | None) -> Iterator[bytes]:
    """All blocks with lines behind a position, in order."""
    rows = conn.execute(f"SELECT body {_AHEAD}", (owner_id(conn, owner), *(after or _BEGIN)))
    return (body for (body,) in rows)


def _hot_lines(parts: Sequence[LogPart], wanted: WantedLines) -> tuple[list[LogLine], int]:
    """The page if there were only hot lines, and the bytes of its lines. Only these lines are made one by one."""
    if not parts:
        return [], 0
    lengths = np.array([len(part.columns.messages) for part in parts])
    ends = np.cumsum(lengths)
    times, sequences = hot_positions(parts)
    which = np.flatnonzero(_beyond(times, sequences, wanted) & _matching(parts, wanted))
    if len(which) > wanted.limit:  # keep the first ones, and all that share the last one's timestamp
        ahead = np.invert(times[which]) if wanted.descending else times[which]
        which = which[ahead <= np.partition(ahead, wanted.limit - 1)[wanted.limit - 1]]
    order = np.lexsort((sequences[which], times[which]))
    which = which[order[::-1] if wanted.descending else order]
    which = which[: wanted.end(times[which])]
    lines: list[LogLine] = []
    size = 0
    for start in range(0, len(which), _AT_ONCE):
        some = which[start : start + _AT_ONCE]
        numbers = np.searchsorted(ends, some, "right")
        within = some - (ends - lengths)[numbers]
        more = [hot_line(parts[number], n) for number, n in zip(numbers.tolist(), within.tolist(), strict=True)]
        lines += more
        size += bytes_of_all(more)
        if size >= wanted.most:
            break
    return lines, size


def hot_positions(parts: Sequence[LogPart]) -> tuple[Int64Array, Int64Array]:
    """The timestamps and the sequence numbers of all lines of the parts, as they lie there."""
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    lengths = np.array([len(part.columns.messages) for part in parts])
    times = np.concatenate([part.columns.timestamps for part in parts])
    firsts = np.array([part.sequence for part in parts], np.int64) - np.cumsum(lengths) + lengths
    return times, np.repeat(firsts, lengths) + np.arange(len(times))


def _beyond(times: Int64Array, sequences: Int64Array, wanted: WantedLines) -> npt.NDArray[np.bool_]:
    if wanted.after is None:
        return np.ones(len(times), np.bool_)
    time, sequence = wanted.after
    ahead = np.less if wanted.descending else np.greater
    beyond: npt.NDArray[np.bool_] = ahead(times, time) | ((times == time) & ahead(sequences, sequence))
    return beyond


def _matching(parts: Sequence[LogPart], wanted: WantedLines) -> npt.NDArray[np.bool_]:
    columns, (matches, workers, *_) = [part.columns for part in parts], wanted
    matching = np.ones(sum(len(one.messages) for one in columns), np.bool_)
    if matches is not None:
        matching &= [matches(*name) for one in columns for name in zip(one.metrics, one.variants, strict=True)]
    if workers is not None:
        matching &= [worker in workers for one in columns for worker in one.workers]
    return matching


def hot_line(part: LogPart, n: int) -> LogLine:
    """The n-th line of a part."""
    columns = part.columns
    return LogLine(
        LogPosition(int(columns.timestamps[n]), part.sequence + n),
        columns.levels[n],
        columns.workers[n],
        columns.messages[n],
        columns.iters[n],
        columns.metrics[n],
        columns.variants[n],
        part.received,
        columns.extras.get(n),
    )


def names_of(parts: Sequence[LogPart]) -> set[Name]:
    """The series of the hot lines."""
    return {name for part in parts for name in zip(part.columns.metrics, part.columns.variants, strict=True)}


def count(conn: sqlite3.Connection, series: SeriesQuery, hot: Sequence[Sequence[LogPart]]) -> int:
    """How many lines there are."""
    query = "SELECT lines FROM series JOIN log_series ON series = id"
    merged = sum(int(lines) for _, _, lines in series_rows(conn, series, query))
    columns = [part.columns for table in hot for part in table]
    if not series.selection:
        return merged + sum(len(one.messages) for one in columns)
    matches = matcher(series.selection)
    return merged + sum(int(matches(*name)) for one in columns for name in zip(one.metrics, one.variants, strict=True))

"""What readers ask of log lines: pages in (timestamp, sequence) order and counts, over blocks and hot lines."""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from apiserver.events.model import EventType, LogLine, LogPosition, Owner, Selection
from apiserver.stores.events.embedded import lines as codec
from apiserver.stores.events.embedded.hot import LogPart, Matcher, Name
from apiserver.stores.events.embedded.names import matcher, owner_id, series_rows

_AHEAD = "FROM log_blocks WHERE owner = ? AND (last_time, last_sequence) > (?, ?) ORDER BY last_time, last_sequence"
_BACK = (
    "FROM log_blocks WHERE owner = ? AND (last_time, last_sequence) < (?, ?)"
    " ORDER BY last_time DESC, last_sequence DESC"
)
_BEGIN = LogPosition(-(2**63), -1)
_END = LogPosition(2**63 - 1, 2**63 - 1)


def page(
    conn: sqlite3.Connection,
    owner: Owner,
    hot: Sequence[Sequence[LogPart]],
    selection: Selection,
    after: LogPosition | None,
    descending: bool,
    limit: int,
    whole_timestamps: bool,
) -> list[LogLine]:
    """Up to `limit` lines beyond `after`, or more when lines with one timestamp are to stay together."""
    if limit < 1:
        return []
    names = {id: name for name, (id,) in series_rows(conn, owner, EventType.LOG, ()).items()}
    matches = matcher(selection)
    parts = [part for table in hot for part in table]
    walks = (
        _merged_lines(conn, owner, names, matches, after, descending),
        _hot_lines(parts, matches, after, descending),
    )
    found: list[LogLine] = []
    for line in heapq.merge(*walks, key=lambda line: line.position, reverse=descending):
        if len(found) >= limit and not (whole_timestamps and line.position.timestamp == found[-1].position.timestamp):
            break
        found.append(line)
    return found


def _merged_lines(
    conn: sqlite3.Connection,
    owner: Owner,
    names: Mapping[int, Name],
    matches: Matcher,
    after: LogPosition | None,
    descending: bool,
) -> Iterator[LogLine]:
    selected = {id for id, name in names.items() if matches(*name)}
    number = owner_id(conn, owner)
    if number is None or not selected:
        return
    every_line = len(selected) == len(names)
    for body in _bodies(conn, number, selected, after, descending):
        lines = codec.decode(body, names)
        indices = lines.beyond(after, descending)
        yield from lines.at(indices if every_line else [n for n in indices if matches(*lines.names[n])])


def _bodies(
    conn: sqlite3.Connection, owner: int, selected: Collection[int], after: LogPosition | None, descending: bool
) -> Iterator[bytes]:
    """The blocks that have selected lines beyond `after`, perhaps others, in walking order."""
    if not descending:
        cursors = [conn.execute(f"SELECT names, body {_AHEAD}", (owner, *(after or _BEGIN)))]
    else:
        # Blocks are disjoint: of those that end at `after` or beyond, only the first can begin before it.
        at = after or _END
        straddling = conn.execute(
            "SELECT names, body FROM log_blocks WHERE owner = ? AND (last_time, last_sequence) >= (?, ?)"
            " ORDER BY last_time, last_sequence LIMIT 1",
            (owner, *at),
        )
        cursors = [straddling, conn.execute(f"SELECT names, body {_BACK}", (owner, *at))]
    for cursor in cursors:
        for names, body in cursor:
            if not selected.isdisjoint(msgspec.msgpack.decode(names)):  # type: ignore[attr-defined]
                yield body


def _hot_lines(
    parts: Sequence[LogPart], matches: Matcher, after: LogPosition | None, descending: bool
) -> Iterator[LogLine]:
    if not parts:
        return
    lines = codec.of_parts(parts)
    yield from lines.at([n for n in lines.beyond(after, descending) if matches(*lines.names[n])])


def names_of(parts: Sequence[LogPart]) -> set[Name]:
    """The series that the hot lines belong to."""
    return {name for part in parts for name in zip(part.columns.metrics, part.columns.variants, strict=True)}


def count(conn: sqlite3.Connection, owner: Owner, hot: Sequence[Sequence[LogPart]], selection: Selection) -> int:
    """How many selected lines there are."""
    query = "SELECT lines FROM series JOIN log_series ON series = id"
    merged = sum(int(lines) for (lines,) in series_rows(conn, owner, EventType.LOG, selection, query).values())
    columns = [part.columns for table in hot for part in table]
    if not selection:
        return merged + sum(len(one.messages) for one in columns)
    matches = matcher(selection)
    return merged + sum(int(matches(*name)) for one in columns for name in zip(one.metrics, one.variants, strict=True))

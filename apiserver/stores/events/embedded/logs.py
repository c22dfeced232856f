"""Reads log lines from blocks and memtables: pages in (timestamp, sequence) order, hits of searches, and counts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from apiserver.common import answers
from apiserver.events.log_filter import LineFilter, LogHits
from apiserver.events.model import EventType, LogLine, LogPosition, Selection
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.codec import compression
from apiserver.stores.events.codec import lines as codec
from apiserver.stores.events.codec.lines import LogPart
from apiserver.stores.events.codec.log_pages import PageOfLines, WantedLines
from apiserver.stores.events.codec.names import Name, matcher
from apiserver.stores.events.embedded import log_sizes
from apiserver.stores.events.embedded.log_walk import Block, Log
from apiserver.stores.events.embedded.names import series_rows
from apiserver.stores.events.sizes import PAGE_BYTES

#: Hot lines that become columns first, at most.
_FIRST = 1000


def page(log: Log, wanted: WantedLines) -> list[LogLine]:
    """A page, as `LogStore.log_lines` describes it."""
    page = _page(log, wanted)
    if page.is_large and wanted.whole:
        return page.whole_timestamps() or _page(log, wanted.of_one_timestamp).lines()
    return page.lines()


def _page(log: Log, wanted: WantedLines) -> PageOfLines:
    selected = {id for name, id in log.ids.items() if wanted.matches is None or wanted.matches(*name)}

    def may_be_in(block: Block) -> bool:
        if wanted.workers is not None and wanted.workers.isdisjoint(log_sizes.workers(block.sizes)):
            return False
        return not selected.isdisjoint(msgspec.msgpack.decode(block.names))

    page, log = PageOfLines(wanted), log.on_page(wanted)
    blocks = filter(may_be_in, log.blocks(wanted.after, descending=wanted.descending)) if selected else ()
    few = min(wanted.limit + 1, _FIRST)  # one line more tells where the last timestamp ends
    for segment in log.walk(wanted.after, blocks, descending=wanted.descending, few=few):
        if page.add(log.lines(segment)):
            break
    return page


def hits(log: Log, lines_filter: LineFilter, after: LogPosition | None) -> LogHits:
    """The next hits, as `LogStore.log_hits` describes it. After `searched_lines`, or PAGE_BYTES, the search pauses.

    No line is made. Of a block whose lines are all asked for, only levels, workers and messages are decoded, and no
    line is looked at if the joined messages have no match. Where hot lines lie between merged ones, their positions are
    read, too.
    """
    begin = after
    places_of_hits: list[int] = []
    searched = size = largest = 0
    most = log.bounds.searched_lines
    for segment in log.walk(begin, log.blocks(begin)):
        if searched >= most or size >= PAGE_BYTES:
            return LogHits(places_of_hits, searched, after, ended=False)
        block, hot = segment
        if block is None:
            places, count = log.hot.texts(hot).places(lines_filter), hot.stop - hot.start
            last = log.hot.positions.at(hot.stop - 1)
        else:
            bytes = compression.size_of(block.body)
            answers.will_read(max(0, bytes - largest))  # only one block at a time is in memory
            size, largest, last = size + bytes, max(largest, bytes), block.last
            if hot.start < hot.stop or (begin is not None and block.first <= begin):
                lines = log.lines(segment).beyond(begin, descending=False)
                places, count = lines.texts.places(lines_filter), len(lines)
            else:
                places, count = _places(block, lines_filter), block.lines
        places_of_hits += [searched + place for place in places]
        searched, after = searched + count, last
    return LogHits(places_of_hits, searched, after, ended=True)


def _places(block: Block, lines_filter: LineFilter) -> list[int]:
    """Where the matching lines are in a block."""
    if lines_filter.workers and lines_filter.workers.isdisjoint(log_sizes.workers(block.sizes)):
        return []
    return codec.decode_texts(block.body).places(lines_filter)


def names_of(parts: Sequence[LogPart]) -> set[Name]:
    """The series of the hot lines."""
    return {name for part in parts for name in zip(part.columns.metrics, part.columns.variants, strict=True)}


def count(log: Log, selection: Selection = ()) -> int:
    """How many lines there are."""
    query = "SELECT lines FROM series JOIN log_series ON series = id"
    rows = series_rows(log.conn, SeriesQuery(log.owner, EventType.LOG, selection), query)
    merged = sum(int(lines) for _, _, lines in rows)
    columns = [part.columns for part in log.recent]
    if not selection:
        return merged + sum(len(one.messages) for one in columns)
    matches = matcher(selection)
    return merged + sum(int(matches(*name)) for one in columns for name in zip(one.metrics, one.variants, strict=True))

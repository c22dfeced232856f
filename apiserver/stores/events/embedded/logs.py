"""Reads log lines from blocks and memtables: pages in (timestamp, sequence) order, and counts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from apiserver.events.model import EventType, LogLine, Selection
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.columns.lines import LogPart
from apiserver.stores.events.columns.log_pages import PageOfLines, WantedLines
from apiserver.stores.events.columns.names import Name, matcher
from apiserver.stores.events.embedded import log_sizes
from apiserver.stores.events.embedded.log_walk import Block, Log
from apiserver.stores.events.embedded.names import series_rows

#: Hot lines that become columns first, at most.
_FIRST = 1000


def page(log: Log, wanted: WantedLines) -> list[LogLine]:
    """A page, as `EventStore.log_lines` describes it."""
    page = _page(log, wanted)
    if page.is_large and wanted.whole:
        return page.whole_timestamps() or _page(log, wanted.of_one_timestamp).lines()
    return page.lines()


def _page(log: Log, wanted: WantedLines) -> PageOfLines:
    selected = {id for name, id in log.ids.items() if wanted.matches is None or wanted.matches(*name)}

    def may_be_in(block: Block) -> bool:
        if wanted.workers is not None and block.sizes and wanted.workers.isdisjoint(log_sizes.workers(block.sizes)):
            return False
        return not selected.isdisjoint(msgspec.msgpack.decode(block.names))

    page, log = PageOfLines(wanted), log.on_page(wanted)
    blocks = filter(may_be_in, log.blocks(wanted.after, descending=wanted.descending)) if selected else ()
    few = min(wanted.limit + 1, _FIRST)  # one line more tells where the last timestamp ends
    for segment in log.walk(wanted.after, blocks, descending=wanted.descending, few=few):
        if page.add(log.lines(segment)):
            break
    return page


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

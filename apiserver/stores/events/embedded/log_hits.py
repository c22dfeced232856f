"""Searches the log of an owner, whose blocks are read only as far as a search needs.

No line is made. Of a block whose lines are all asked for, only levels, workers and messages are decoded, and no line is
looked at if the joined messages have no match. Where hot lines lie between merged ones, their positions are read, too.
"""

from __future__ import annotations

from apiserver import answers
from apiserver.events.log_filter import LineFilter, LogHits
from apiserver.events.model import LogPosition
from apiserver.stores.events.base import PAGE_BYTES
from apiserver.stores.events.columns import compression
from apiserver.stores.events.columns import lines as codec
from apiserver.stores.events.embedded import log_sizes
from apiserver.stores.events.embedded.log_walk import AT_ONCE, Block, Log


def hits(log: Log, wanted: LineFilter, after: LogPosition | None) -> LogHits:
    """The next hits, as `EventStore.log_hits` describes it. After AT_ONCE lines, or PAGE_BYTES, the search pauses."""
    begin = after
    found: list[int] = []
    searched = size = largest = 0
    for segment in log.walk(begin, log.blocks(begin)):
        if searched >= AT_ONCE or size >= PAGE_BYTES:
            return LogHits(found, searched, after, ended=False)
        block, hot = segment
        if block is None:
            places, count = log.hot.texts(hot).places(wanted), hot.stop - hot.start
            last = log.hot.positions.at(hot.stop - 1)
        else:
            bytes = compression.size_of(block.body)
            answers.will_read(max(0, bytes - largest))  # only one block at a time is in memory
            size, largest, last = size + bytes, max(largest, bytes), block.last
            if hot.start < hot.stop or (begin is not None and block.first <= begin):
                lines = log.lines(segment).beyond(begin, descending=False)
                places, count = lines.texts.places(wanted), len(lines)
            else:
                places, count = _places(block, wanted), block.lines
        found += [searched + place for place in places]
        searched, after = searched + count, last
    return LogHits(found, searched, after, ended=True)


def _places(block: Block, wanted: LineFilter) -> list[int]:
    """Where the matching lines are in a block."""
    if wanted.workers and block.sizes and wanted.workers.isdisjoint(log_sizes.workers(block.sizes)):
        return []
    return codec.decode_texts(block.body).places(wanted)

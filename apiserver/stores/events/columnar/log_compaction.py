"""Makes chunks of log lines (`compaction.py`).

Only fragments that have ended get into chunks. If a fragment is undone, the store may give its place to another one,
and two lines would have one position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from apiserver.events.model import Owner
from apiserver.off_loop import off_loop
from apiserver.stores.events.columnar.blocks import Block, Found, NewBlock
from apiserver.stores.events.columnar.compaction import NO_VERSION, Run
from apiserver.stores.events.columnar.loading import Loaded
from apiserver.stores.events.columnar.log_blocks import (
    BATCHES,
    LINES,
    NO_LINES,
    SEALED,
    batch_id,
    batches_of,
    chunks_of,
    on_axis,
)
from apiserver.stores.events.columnar.log_reading import LogLoader, bytes_of, cut, lines_in
from apiserver.stores.events.columnar.stretches import Stretch
from apiserver.stores.events.embedded.lines import joined

#: Bytes of memory of lines that become chunks at once.
_AT_A_TIME = 32 * 2**20


class LinesMaker:
    """Makes chunks of log lines."""

    at_a_time = _AT_A_TIME
    sealed = SEALED

    def __init__(self, loader: LogLoader) -> None:
        self._loader = loader

    def size(self, stretch: Stretch) -> int:
        """Bytes of memory that the lines of the stretch take, about."""
        return bytes_of(stretch)

    def pieces(self, stretch: Stretch) -> list[Stretch]:
        """The stretch, cut where blocks begin. A late line may lie before a whole log, and make one stretch of it."""
        if bytes_of(stretch) <= self.at_a_time:
            return [stretch]
        edges, size = [stretch.first], 0
        for part in sorted(stretch.parts, key=lambda part: part.first):
            if size >= self.at_a_time // 2 and part.first > edges[-1]:
                edges.append(part.first)
                size = 0
            size += part.block.size
        return [cut(stretch, first, end - 1) for first, end in pairwise([*edges, stretch.last + 1])]

    async def seen(self, found: Found, up_to: int) -> tuple[Found, list[Block]]:
        """Chunks, and fragments that have ended; and those that were sent again."""
        ended = [block for block in found.blocks if block.statement is not None or block.version.place <= up_to]
        return await self._loader.seen(found._replace(blocks=ended))

    def at(self, block: NewBlock) -> Block:
        """The block on the axis of logs."""
        return on_axis(block.at(NO_VERSION))

    async def chunks(self, owner: Owner, runs: Sequence[Run], up_to: int) -> list[NewBlock]:
        """Chunks with all lines of these runs."""
        blocks = [part.block for run in runs for one in run.stretches for part in one.parts]
        loaded = await self._loader.load(blocks, LINES)
        of_chunks = await self._loader.load([block for block in blocks if block.statement is not None], BATCHES)
        batches = {block.version.place: batch_id(block) for block in blocks if not block.lasts}
        for columns in of_chunks.values():
            batches |= batches_of(columns)

        def make() -> list[NewBlock]:
            return [one for run in runs for one in _chunks_of(owner, run, loaded, batches, up_to)]

        return await off_loop(sum([block.count for block in blocks]), make)


def _chunks_of(owner: Owner, run: Run, loaded: Loaded, batches: Mapping[int, bytes], up_to: int) -> list[NewBlock]:
    found = [lines for one in run.stretches if len(lines := lines_in(one, loaded))]
    lines = joined(found) if found else NO_LINES
    return chunks_of(owner, run.ends, lines, batches, up_to, run.newest)

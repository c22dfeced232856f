"""Makes chunks of log lines (`compaction.py`).

Only fragments that have ended get into chunks. If a fragment is undone, the store may give its place to another one,
and two lines would have one position.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from apiserver.common.off_loop import off_loop
from apiserver.events.model import EventType, Owner
from apiserver.stores.events.blocks.blocks import Block, Found, NewBlock
from apiserver.stores.events.blocks.loading import Loaded
from apiserver.stores.events.blocks.log_batches import Batches, joined
from apiserver.stores.events.blocks.log_blocks import (
    BATCHES,
    LINES,
    NO_LINES,
    batch_id,
    batches_of,
    chunks_of,
    note,
    note_in,
    on_axis,
    position_at,
)
from apiserver.stores.events.blocks.log_reading import LogLoader, bytes_of, cut, lines_in, of_lasting
from apiserver.stores.events.blocks.makers import Maker, Run
from apiserver.stores.events.blocks.precedence import BlockPart
from apiserver.stores.events.blocks.stretches import Stretch
from apiserver.stores.events.codec.lines import Lines
from apiserver.stores.events.codec.lines import joined as lines_of_all


class LinesMaker(Maker):
    """Makes chunks of log lines."""

    type = EventType.LOG
    loader: LogLoader

    @property
    def at_a_time(self) -> int:
        """In bytes of memory."""
        return self.loader.bounds.bytes_at_a_time

    @property
    def sealed(self) -> int:
        """In bytes of memory."""
        return self.loader.bounds.sealed_bytes

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

    async def may_begin(self, found: Found, up_to: int) -> bool:
        """Whether no lines are being deleted. Who asks has the lease: if they are, their server has stopped."""
        deletion_note = note_in(found.blocks)
        if deletion_note is None:
            return True
        deletion = deletion_note.series[1]
        if deletion:
            await self.loader.store.put([note(deletion_note.owner, "")])
        return not deletion and deletion_note.version.place <= up_to

    async def seen(self, found: Found, up_to: int) -> tuple[Found, list[Block]]:
        """Chunks made of fragments, and what else has ended; and fragments that were sent again."""
        return await self.loader.seen(of_lasting(found, up_to))

    def at(self, block: NewBlock) -> Block:
        """The block on the axis of logs."""
        return on_axis(super().at(block))

    async def chunks(self, owner: Owner, runs: Sequence[Run], up_to: int) -> list[NewBlock]:
        """Chunks with all lines of these runs that are to be kept."""
        parts = [part for run in runs for part in run.parts]
        loaded = await self.loader.column(LINES, [part.block for part in parts])
        of_chunks = await self.loader.column(
            BATCHES, [part.block for part in parts if part.block.statement is not None]
        )

        def make() -> list[NewBlock]:
            batches, bounds = joined([batches_in(part, of_chunks) for part in parts]), self.loader.bounds
            return [
                one
                for run in runs
                for one in chunks_of(owner, run.ends, self._lines(run, loaded), batches, up_to, run.newest, bounds)
            ]

        self.loader.forget([part.block for part in parts], (LINES, BATCHES))  # nobody will read them
        return await off_loop(sum([part.block.count for part in parts]), make)

    def _lines(self, run: Run, loaded: Loaded) -> Lines:
        found = [lines for one in run.stretches if len(lines := self.kept(lines_in(one, loaded)))]
        return lines_of_all(found) if found else NO_LINES

    def kept(self, lines: Lines) -> Lines:
        """Those of the lines that are to be kept: all of them."""
        return lines


def batches_in(part: BlockPart, of_chunks: Loaded) -> Batches:
    """The fragments that the lines of a part of a block came with."""
    block, first, last = part.block, position_at(part.first).timestamp, position_at(part.last).timestamp
    if block.statement is not None:
        return batches_of(of_chunks[block.id]).between(first, last)
    return Batches.of([(block.version.place, batch_id(block), first, last)])

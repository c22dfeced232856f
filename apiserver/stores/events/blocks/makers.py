"""Makes chunks of runs of stretches: a `Maker` for each type of events. `LinesMaker` is in `log_compaction.py`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from apiserver.common.off_loop import off_loop
from apiserver.events.model import EventType, Owner
from apiserver.events.queries import EVERYWHERE
from apiserver.stores.events.blocks import encoding
from apiserver.stores.events.blocks.blocks import NO_VERSION, Block, Found, NewBlock
from apiserver.stores.events.blocks.bounds import ColumnarBounds
from apiserver.stores.events.blocks.loading import Loaded, Loader, points_in
from apiserver.stores.events.blocks.precedence import BlockPart
from apiserver.stores.events.blocks.stretches import Stretch
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.codec.points import WholePoints, Workers, concat


class Run(NamedTuple):
    """Neighbouring stretches of a series."""

    series: Name
    stretches: Sequence[Stretch]
    is_settled: bool
    """Whether the stretches may stay as they are, as chunks alone may."""
    size: int

    def joined(self, next: Run) -> Run:
        """This run and the next one."""
        both = [*self.stretches, *next.stretches]
        return Run(self.series, both, self.is_settled and next.is_settled, self.size + next.size)

    @property
    def ends(self) -> tuple[int, int]:
        """The first and the last iteration that chunks of it have to cover."""
        return self.stretches[0].first, self.stretches[-1].last

    @property
    def parts(self) -> list[BlockPart]:
        """The parts of blocks that count there."""
        return [part for stretch in self.stretches for part in stretch.parts]

    @property
    def newest(self) -> int:
        """The place of the newest fragment from which its points came."""
        return max(part.block.newest for part in self.parts)


class Maker(ABC):
    """Makes chunks of events of one type."""

    type: EventType

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    @property
    @abstractmethod
    def at_a_time(self) -> int:
        """The most that is made at once, as `size` counts it."""

    @property
    @abstractmethod
    def sealed(self) -> int:
        """Chunks of this size are not made anew with their neighbours."""

    def size(self, stretch: Stretch) -> int:
        """How much there is in a stretch, about."""
        return stretch.size

    def pieces(self, stretch: Stretch) -> list[Stretch]:
        """The stretch, cut into parts of it if it is too large to be made at once."""
        return [stretch]

    async def may_begin(self, found: Found, up_to: int) -> bool:
        """Whether chunks may be made of the blocks now, if writes up to a place have ended."""
        return True

    def is_settled(self, stretch: Stretch) -> bool:
        """Whether the stretch may stay as it is: a chunk is alone there."""
        return stretch.chunk is not None

    async def seen(self, found: Found, up_to: int) -> tuple[Found, list[Block]]:
        """The blocks that are chunks or may become chunks, if writes up to a place have ended; and blocks to remove."""
        return found, []

    def at(self, block: NewBlock) -> Block:
        """The block that is found once this one is put; its version does not matter."""
        return block.at(NO_VERSION)

    @abstractmethod
    async def chunks(self, owner: Owner, runs: Sequence[Run], up_to: int) -> list[NewBlock]:
        """Chunks with everything in these runs."""


class PointsMaker(Maker):
    """Makes chunks of points. Points of a write that is undone may stay in a chunk."""

    type = EventType.SCALAR

    @property
    def at_a_time(self) -> int:
        """In points."""
        return self.loader.bounds.points_at_a_time

    @property
    def sealed(self) -> int:
        """In points."""
        return self.loader.bounds.sealed_points

    async def chunks(self, owner: Owner, runs: Sequence[Run], up_to: int) -> list[NewBlock]:
        """Chunks with all points of these runs. Nobody will read the blocks that they replace."""
        loaded = await self.loader.whole(stretch for run in runs for stretch in run.stretches)
        chunks = await off_loop(
            sum([run.size for run in runs]),
            lambda: [chunk for run in runs for chunk in _chunks_of(owner, run, loaded, up_to, self.loader.bounds)],
        )
        self.loader.replaced([part.block for run in runs for part in run.parts], chunks)
        return chunks


def _chunks_of(owner: Owner, run: Run, loaded: Loaded, up_to: int, bounds: ColumnarBounds) -> list[NewBlock]:
    workers = Workers()
    points = concat([points_in(stretch, loaded, EVERYWHERE, workers) for stretch in run.stretches])
    curve = WholePoints(run.series, points, workers.names)
    return encoding.chunks_of(owner, curve, run.ends, up_to, run.newest, bounds)

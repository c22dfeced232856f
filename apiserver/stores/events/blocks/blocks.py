"""The BlockStore protocol: what the engine of columns asks of the place where its documents are kept.

A *block* is a fragment or a chunk (`precedence.py`): some points of one series, or some log lines of one owner, as
encoded columns, and beside them what can be told without decoding: which series, which iterations, how many points. A
block store knows nothing of what is in the columns. Blocks of log lines have times in place of iterations.

Short fragments of several series that came with one batch are put as one, a *bundle*: one id, one place, columns with
the points of all of them. It is found as a block for each series, which says where its points are in these columns.

    a bundle is put     id b, columns with 5 points; members: loss at 0 to 2, 3 points; accuracy at 0 to 1, 2 points
    two blocks are      id b, loss, 0 to 2, count 3, in_bundle: start 0 of 5 points, 2 blocks
    found               id b, accuracy, 0 to 1, count 2, in_bundle: start 3 of 5 points, 2 blocks

A block store promises:

- Each write has a *place* in one order of its owner. A write is *visible* from some moment on, perhaps before writes of
  earlier places are. It has *ended* when it cannot be undone any more; before that, the failure of a machine may undo
  it. A write is acknowledged only when it has ended.
- Blocks with one id have the same points. So a block that is put twice is there once, at the place of the last put, or
  of the first one if it is to be put `once`.
- `find` sees everything that has ended, if a caller asked `ended` before, or if this server wrote it. If it sees that a
  block is removed, it sees the blocks that were put before.
- What a call asked of a machine that did not answer may be done much later. That changes nothing if the call was made
  again meanwhile, and ended.
- A put of several blocks may stop half-way, so that only some of them are kept. Putting all of them again completes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple, Protocol

import msgspec

from apiserver.events.model import Owner
from apiserver.events.queries import EVERYWHERE, Range, SeriesQuery
from apiserver.stores.events.base import EventStoreError
from apiserver.stores.events.codec.names import Name

#: The place of a statement that no write comes before.
NOTHING = -1
#: The series of blocks that are not of one series.
NO_SERIES: Name = ("", "")

#: Encoded columns of a block, by their names.
Columns = Mapping[str, bytes]


class Member(NamedTuple):
    """The points of one series in a bundle. They follow those of the members before it."""

    series: Name
    first: int
    last: int
    points: int


class InBundle(NamedTuple):
    """Where a block's points begin in the columns of its bundle, and how many points and blocks that has."""

    start: int
    points: int
    blocks: int


class Statement(NamedTuple):
    """What makes a block a chunk: it has all points of its iterations that were written up to place `up_to`.

    `newest` is the place of the newest fragment from which its points came: to a reader who knows all up to there,
    the chunk is no change. None: its points came with no fragment. The chunk brings them, and is as new as its own
    place says.
    `shift` says how wide the sums among its columns are.
    """

    up_to: int
    newest: int | None
    shift: int


@dataclass(frozen=True, slots=True)
class NewBlock:
    """A block to put. All its points lie at the iterations `first` to `last`."""

    owner: Owner
    series: Name
    """Of a bundle: NO_SERIES."""
    id: str
    first: int
    last: int
    count: int
    columns: Columns
    statement: Statement | None = None
    """None: it is a fragment."""
    begin: int = 0
    end: int = 0
    """Where the block begins among the events at `first`, and where it ends among those at `last`, if one says so."""
    size: int = 0
    """Bytes of memory that its events take, about; 0: as many as points take."""
    once: bool = False
    """If the block is there already, and no deletion came since, the store keeps it at its place.

    If a deletion came, that has ended before the block is put anew.
    """
    members: Sequence[Member] = ()
    """If it is a bundle, the fragments in it. They are of different series."""

    @property
    def names(self) -> list[Name]:
        """The series whose events it has."""
        return [one.series for one in self.members] or [self.series]

    def at(self, version: Version) -> Block:
        """The block that a store has once this one is put, which is no bundle."""
        return Block(
            self.owner,
            self.series,
            self.id,
            version,
            self.first,
            self.last,
            self.count,
            self.statement,
            self.begin,
            self.end,
            self.size,
        )


class Version(NamedTuple):
    """One put of a block: its place, and the term of the store in which the place was given."""

    place: int
    term: int


#: Where the version of a block does not matter.
NO_VERSION = Version(0, 0)


class Block(msgspec.Struct, frozen=True):
    """A block that a store has, without its columns."""

    owner: Owner
    series: Name
    id: str
    version: Version
    first: int
    last: int
    count: int
    statement: Statement | None = None
    begin: int = 0
    end: int = 0
    size: int = 0
    in_bundle: InBundle | None = None
    """If it is in a bundle, where. The others have the same id, version and columns."""

    @property
    def up_to(self) -> int:
        """The place up to which it has everything; NOTHING, if it is a fragment."""
        return NOTHING if self.statement is None else self.statement.up_to

    @property
    def brings(self) -> bool:
        """Whether it is a chunk of events that came with no fragment."""
        return self.statement is not None and self.statement.newest is None

    @property
    def brought_at(self) -> int | None:
        """The place at which its events came. None: it is a chunk of events that came with fragments."""
        return self.version.place if self.statement is None or self.brings else None

    @property
    def reaches(self) -> int:
        """The place up to which it has something: it counts if no deletion lies behind."""
        place = self.brought_at
        return self.up_to if place is None else place

    @property
    def key(self) -> tuple[str, Name]:
        """What no other block of its owner has at the same place."""
        return self.id, self.series

    @property
    def blocks(self) -> int:
        """How many blocks share its id: all blocks of its bundle, or 1 without a bundle."""
        return 1 if self.in_bundle is None else self.in_bundle.blocks

    @property
    def lasts(self) -> bool:
        """Whether it never changes, and is not replaced soon: its columns are worth keeping in memory."""
        return self.statement is not None

    @property
    def newest(self) -> int:
        """The place of the newest fragment from which its points came, or its own place."""
        newest = None if self.statement is None else self.statement.newest
        return self.version.place if newest is None else newest


def in_bundle(owner: Owner, id: str, version: Version, members: Sequence[Member]) -> list[Block]:
    """The blocks of a bundle."""
    starts = [0, *accumulate(member.points for member in members)]
    return [
        Block(owner, one.series, id, version, *one[1:], in_bundle=InBundle(start, starts[-1], len(members)))
        for one, start in zip(members, starts, strict=False)
    ]


class Found(NamedTuple):
    """The blocks that a store has, in any order, and the owner's last deletion."""

    blocks: list[Block]
    deleted: int
    """Nothing counts that lies before this place; 0: there was no deletion."""
    noted: int
    """The place of the note that says so, which may lie behind."""

    @property
    def counting(self) -> list[Block]:
        """The blocks that the deletion leaves."""
        return [block for block in self.blocks if block.reaches >= self.deleted]


class Gone(Exception):
    """A block is no longer there, as another one has its points now. The reader has to begin again."""


class Refused(EventStoreError):
    """The store will never keep some of the blocks that were put. All others are kept."""

    def __init__(self, blocks: Sequence[tuple[NewBlock, str]]) -> None:
        """The blocks, and why each is refused."""
        super().__init__("; ".join(dict.fromkeys(reason for _, reason in blocks)))
        self.blocks = [block for block, _ in blocks]
        self.events: Counter[str] = Counter()
        """How many events are in these blocks, by reason."""
        for block, reason in blocks:
            self.events[reason] += block.count


class BlockStore(Protocol):
    """Blocks of one type of events, of all owners. All methods raise EventStoreBusy if they cannot serve now."""

    async def put(self, blocks: Sequence[NewBlock]) -> None:
        """Keep the blocks. All of these writes have ended once this returns, or raises Refused."""

    async def find(self, series: SeriesQuery, range: Range = EVERYWHERE, place: int = 0) -> Found:
        """The blocks of the series with iterations in the range that were put at a place or behind it."""

    async def find_of_each(self, queries: Sequence[SeriesQuery]) -> list[Found]:
        """As `find` of each query, in order: for the few series of many owners."""

    async def crowded(self, fragments: int) -> Mapping[Owner, int]:
        """Owners that have a series with so many fragments, or some of these owners.

        For each, the place of the newest fragment of such series.
        """

    async def fetch(self, wanted: Sequence[tuple[Block, Sequence[str]]]) -> list[Columns]:
        """The named columns of each block, of any owners; those of its bundle if it is in one.

        Gone is raised if one of the blocks is no longer there, or was put again since.
        """

    async def remove(self, owner: Owner, blocks: Sequence[Block]) -> None:
        """Remove the blocks, but none that was put again since. Some may stay: nothing depends on it.

        If a block is in a bundle, all of that is removed.
        """

    async def delete(self, owners: Sequence[Owner]) -> Mapping[Owner, int]:
        """Note that nothing counts any more that the owners have. For each owner this has a place, as a put has."""

    async def delete_before(self, owner: Owner, place: int) -> None:
        """Note that nothing counts any more that lies before a place up to which all writes have ended.

        An earlier note that says more stays. The note has ended once this returns.
        """

    async def remove_before(self, places: Mapping[Owner, int]) -> None:
        """Remove the blocks that lie before these places of deletions that have ended. Some may stay."""

    async def ended(self, owner: Owner) -> int:
        """A place up to which all writes of the owner have ended. A `find` after this sees them."""

    async def until_ended(self, owner: Owner, place: int) -> int:
        """Wait until all writes up to this place have ended; return what `ended` does then."""

    async def lease(self, owner: Owner, holder: str, seconds: float) -> bool:
        """Whether the holder may compact the owner for so long. 0 gives the lease back."""

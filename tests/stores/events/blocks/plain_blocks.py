"""A block store of plain lists: slow, kept nowhere, and so simple that it can be believed.

A write is visible and has ended at once. `test_servers.py` lets writes become visible in another order, and be undone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from apiserver.events.model import Owner
from apiserver.events.queries import EVERYWHERE, Range, SeriesQuery
from apiserver.stores.events.blocks.blocks import Block, Columns, Found, Gone, NewBlock, Version, in_bundle
from apiserver.stores.events.codec.names import Name
from tests.contract.plain_event_store import selects


@dataclass(eq=False)
class Write:
    """A write of an owner: a block, or with `removed` the removal of one, or else a deletion.

    It is of everything, or of what lies `before` a place.
    """

    place: int
    block: NewBlock | None = None
    removed: Block | None = None
    before: int | None = None
    is_visible: bool = False
    has_ended: bool = False
    is_undone: bool = False

    @property
    def is_deletion(self) -> bool:
        """Whether it is a deletion of everything."""
        return self.block is None and self.removed is None and self.before is None


@dataclass
class OwnerWrites:
    places: int = 0
    writes: list[Write] = field(default_factory=list)
    lease: tuple[str, float] = ("", 0.0)

    def begin(self, block: NewBlock | None = None, removed: Block | None = None, before: int | None = None) -> Write:
        self.places += 1
        self.writes.append(Write(self.places, block, removed, before))
        return self.writes[-1]

    @property
    def visible(self) -> list[Write]:
        return [one for one in self.writes if one.is_visible and not one.is_undone]

    def kept(self) -> dict[str, Write]:
        """The last put of each block that is there."""
        found: dict[str, Write] = {}
        for one in self.visible:
            if one.block is not None:
                found[one.block.id] = one
            elif one.removed is not None:
                known = found.get(one.removed.id)
                if known is not None and known.place == one.removed.version.place:
                    del found[one.removed.id]
        return found

    def put_once(self, id: str) -> Write | None:
        """The write of a block with this id that counts, whether it is visible or not."""
        found: Write | None = None
        for one in self.writes:
            if one.is_undone:
                continue
            if one.block is not None and one.block.id == id:
                found = one
            elif one.is_deletion or (found and one.removed and one.removed.version.place == found.place):
                found = None
        return found

    @property
    def deleted(self) -> tuple[int, int]:
        """Before which place nothing counts, and the place of the last note of a deletion."""
        notes = [one for one in self.visible if one.is_deletion or one.before is not None]
        return max([one.before or one.place for one in notes], default=0), max([one.place for one in notes], default=0)

    @property
    def ended_up_to(self) -> int:
        return (
            min([one.place for one in self.writes if not (one.has_ended or one.is_undone)], default=self.places + 1) - 1
        )

    def fail_over(self) -> None:
        """Undo all that has not ended."""
        for one in self.writes:
            one.is_undone = one.is_undone or not one.has_ended


def found_of(block: NewBlock, version: Version) -> list[Block]:
    """The blocks that are found once this one is put: one, or those of a bundle."""
    return in_bundle(block.owner, block.id, version, block.members) if block.members else [block.at(version)]


class PlainBlocks:
    """The BlockStore protocol, word by word."""

    def __init__(self) -> None:
        self.owners: dict[Owner, OwnerWrites] = {}

    def now(self) -> float:
        """Seconds, by which leases end."""
        return time.monotonic()

    def of(self, owner: Owner) -> OwnerWrites:
        return self.owners.setdefault(owner, OwnerWrites())

    async def pause(self) -> None:
        """Where others may do something, or a server may stop."""

    async def end(self, writes: Sequence[Write]) -> None:
        """Return when the writes have ended."""
        for one in writes:
            one.is_visible = one.has_ended = True

    async def put(self, blocks: Sequence[NewBlock]) -> None:
        writes = []
        for block in blocks:
            await self.pause()
            owner = self.of(block.owner)
            if block.once:
                await self.end([one for one in owner.writes if one.is_deletion and not one.is_undone])
            known = owner.put_once(block.id) if block.once else None
            writes.append(known or owner.begin(block))
        await self.end(writes)

    async def delete(self, owners: Sequence[Owner]) -> dict[Owner, int]:
        writes = {owner: self.of(owner).begin() for owner in owners}
        await self.end([*writes.values()])
        return {owner: write.place for owner, write in writes.items()}

    async def delete_before(self, owner: Owner, place: int) -> None:
        await self.pause()
        await self.end([self.of(owner).begin(before=place)])

    async def remove_before(self, places: Mapping[Owner, int]) -> None:
        for owner, place in places.items():
            kept = [one for one in self.of(owner).kept().values() if one.place < place]
            await self.remove(owner, [one.block.at(Version(one.place, 1)) for one in kept if one.block is not None])

    async def remove(self, owner: Owner, blocks: Sequence[Block]) -> None:
        for block in blocks:
            await self.pause()
            await self.end([self.of(owner).begin(removed=block)])

    async def find(self, series: SeriesQuery, range: Range = EVERYWHERE, place: int = 0) -> Found:
        await self.pause()
        owner = self.of(series.owner)
        writes = [(one.block, Version(one.place, 1)) for one in owner.kept().values() if one.block is not None]
        blocks = [found for block, version in writes for found in found_of(block, version)]
        wanted = [
            one
            for one in blocks
            if selects(series.selection, *one.series)
            and one.first <= range.greatest
            and range.least <= one.last
            and one.version.place >= place
        ]
        return Found(wanted, *owner.deleted)

    async def find_of_each(self, queries: Sequence[SeriesQuery]) -> list[Found]:
        return [await self.find(series) for series in queries]

    async def crowded(self, fragments: int) -> dict[Owner, int]:
        found: dict[Owner, int] = {}
        for owner, writes in self.owners.items():
            places: dict[Name, list[int]] = {}
            for one in writes.kept().values():
                if one.block is not None and one.block.statement is None:
                    for block in found_of(one.block, Version(one.place, 1)):
                        places.setdefault(block.series, []).append(one.place)
            newest = [max(some) for some in places.values() if len(some) >= fragments]
            if newest:
                found[owner] = max(newest)
        return found

    async def fetch(self, wanted: Sequence[tuple[Block, Sequence[str]]]) -> list[Columns]:
        await self.pause()
        owners = {block.owner for block, _ in wanted}
        kept = {id: write for owner in owners for id, write in self.of(owner).kept().items()}
        if any(block.id not in kept or kept[block.id].place != block.version.place for block, _ in wanted):
            raise Gone
        found = [(kept[block.id].block, columns) for block, columns in wanted]
        return [{name: block.columns[name] for name in columns} for block, columns in found if block is not None]

    async def ended(self, owner: Owner) -> int:
        await self.pause()
        return self.of(owner).ended_up_to

    async def until_ended(self, owner: Owner, place: int) -> int:
        while (ended := await self.ended(owner)) < place:
            pass
        return ended

    async def lease(self, owner: Owner, holder: str, seconds: float) -> bool:
        await self.pause()
        of, now = self.of(owner), self.now()
        if of.lease[0] != holder and of.lease[1] > now:
            return False
        of.lease = (holder, now + seconds)
        return True

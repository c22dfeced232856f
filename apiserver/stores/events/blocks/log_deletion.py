"""Deletes lines of a log by age and series: makes chunks without them, and keeps compaction away meanwhile.

1. Take the lease of the owner. Put a *note*, which says that this deletion is under way. Its place is P.
2. Wait until every write up to P has ended. Find what there is. If this note is not there any more, give up.
3. Where lines have to go, make chunks of all other lines, as compaction does. The lines that go are those written
   before P. The chunks have everything up to a place that is P or lies beyond it.
4. When these writes have ended, look for the note again. If it is not there any more, give up.
5. Put a note in its place which says that no deletion is under way.

Who compacts and finds that a deletion is under way makes no chunks. It has the lease, so the server that deletes has
stopped, or is very slow. So it puts the note of step 5 itself. It goes on when this note has ended, the next time.

For example, lines of places 3 and 4 have to go:

    server A compacts, up to 5     it has found the lines of 3 and 4, and is slow
    server B puts its note at 6    finds these lines, makes a chunk without them up to 7, looks for its note, ends
    server A puts its chunk        it counts nowhere, as that of B goes further

**No line comes back.** A line that goes was written before P, so step 2 finds it, and a chunk of step 3 covers its
place. Another chunk may still have the line. If it was made by who had asked for a place before the note had ended, it
is up to a place before P, and counts nowhere beside the chunk of step 3. Whoever asked later found this note, and made
nothing, or found the note behind it. That one came after step 4, or the deletion would have given up, and so after all
chunks of step 3. These were found, too, and have none of the lines.

**No other line goes.** Chunks of step 3 have all other lines of their stretches, and are true statements about them.

**Known lines.** If step 2 finds lines that the caller does not know, nothing is deleted. Lines that come behind P stay
anyway. So none goes that came since the caller looked.

**Giving up.** The caller is told to try again. A part of the lines may have gone: lines are deleted stretch by stretch.
The same is true if a server stops in the middle. Only one deletion of an owner's lines is under way, as there is only
one note. If a second one begins, the first one gives up.

**Resends.** A chunk still names the fragments that deleted lines came with. So a body that is sent again after its
lines were deleted adds nothing, as in other stores.

**Changes.** A note is found by whoever asks what changed since a place before it. Then everything may have.
"""

from __future__ import annotations

import math

import numpy as np

from apiserver.events.model import EventType, LogPosition, Owner, Selection
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.blocks.blocks import NO_SERIES, Block, BlockStore, Found
from apiserver.stores.events.blocks.compaction import make_chunks
from apiserver.stores.events.blocks.leasing import leased
from apiserver.stores.events.blocks.loading import TRIES
from apiserver.stores.events.blocks.log_blocks import ABOUT, about_of, note, note_in, place_of, written_at
from apiserver.stores.events.blocks.log_compaction import LinesMaker
from apiserver.stores.events.blocks.log_reading import LogLoader
from apiserver.stores.events.blocks.stretches import Stretch
from apiserver.stores.events.codec.lines import Lines
from apiserver.stores.events.codec.names import Matcher, matcher


async def delete_lines(
    loader: LogLoader, series: SeriesQuery, before: int | None, exclude: Selection, known: int | None
) -> int:
    """Delete lines as `LogStore.delete_logs` says; return how many there were.

    None are deleted if step 2 finds lines of the owner that came behind the place `known`, if there is one.
    """
    store, owner = loader.store, series.owner
    async with leased(store, owner, loader.bounds) as deletion:
        await store.put([note(owner, deletion)])
        found, up_to, place = await _found(store, owner, deletion)
        if known is not None and any(block.series == NO_SERIES and block.newest > known for block in found.counting):
            await store.put([note(owner, "")])
            return 0
        kept = _LinesToKeep(loader, _doomed(series.selection, exclude), before, place)
        for _ in range(TRIES):
            if await make_chunks(kept, owner, found, up_to, deletion, 1):
                break
            found, up_to, _ = await _found(store, owner, deletion)
        else:
            raise EventStoreBusy("this log is compacted again and again", overloaded=False)
        await _found(store, owner, deletion)
        await store.put([note(owner, "")])
    return kept.count_of_others


async def _found(store: BlockStore, owner: Owner, deletion: str) -> tuple[Found, int, int]:
    """What there is while this deletion is under way, a place up to which all has ended, and the place of the note."""
    place = 0
    while True:
        up_to = await store.until_ended(owner, place)
        found = await store.find(SeriesQuery(owner, EventType.LOG))
        deletion_note = note_in(found.blocks)
        if deletion_note is None or deletion_note.series[1] != deletion:
            raise EventStoreBusy("another deletion of lines of this log has begun", overloaded=False)
        place = max(deletion_note.version.place, found.noted)
        if up_to >= place:
            return found, up_to, deletion_note.version.place


def _doomed(selection: Selection, exclude: Selection) -> Matcher:
    selected, excluded = matcher(selection), matcher(exclude)
    return lambda metric, variant: selected(metric, variant) and not (exclude and excluded(metric, variant))


class _LinesToKeep(LinesMaker):
    """Makes chunks without lines of the `doomed` series of before a time and a place, and counts these lines."""

    def __init__(self, loader: LogLoader, doomed: Matcher, before: int | None, place: int) -> None:
        super().__init__(loader)
        self._doomed = doomed
        self._before = None if before is None else LogPosition(before, -1)
        self._place = place
        self._with_others: set[str] = set()
        self.count_of_others = 0

    def is_settled(self, stretch: Stretch) -> bool:
        """Whether a chunk is alone there, and all of its lines are to be kept."""
        return super().is_settled(stretch) and self._with_others.isdisjoint(part.block.id for part in stretch.parts)

    async def seen(self, found: Found, up_to: int) -> tuple[Found, list[Block]]:
        """As of all lines. It is known then which blocks may have lines that are not to be kept."""
        seen, again = await super().seen(found, up_to)
        end = math.inf if self._before is None else place_of(self._before)
        about = await self.loader.column(ABOUT, [block for block in seen.blocks if block.first < end])
        self._with_others = {
            id for id, columns in about.items() if any(self._doomed(*name) for *name, _ in about_of(columns)[0])
        }
        return seen, again

    def kept(self, lines: Lines) -> Lines:
        """Those of the lines that are to be kept. The others are counted."""
        end = len(lines) if self._before is None else lines.before(self._before)
        is_kept = np.ones(len(lines), bool)
        is_kept[lines.names.where([name for name in lines.names.table if self._doomed(*name)])] = False
        is_kept |= written_at(lines.sequences) >= self._place
        is_kept[end:] = True
        if is_kept.all():
            return lines
        self.count_of_others += int(np.count_nonzero(~is_kept))
        return lines.take(np.flatnonzero(is_kept))

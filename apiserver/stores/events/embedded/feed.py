"""Tells what changed since a place in the journal's order.

A place is a segment, and how many of its records a reader has seen. Records come into memory in the order in which they
are in the journal, so a place means the same after a restart or `kill -9`. What is told depends on how old it is:

    its segment is in memory         the records behind the place
    it was merged not long ago       what the owner got with the whole segment, so some of it perhaps again
    it was merged long ago, or in    the owner's mark in the database is the place of its newest record: nothing is
    an earlier process               told if that lies before the reader's place, and else "everything"

A deletion is no record, so deletions are numbered apart, and anew in each process. To readers who come from an earlier
process, another mark in the database says behind which place nothing of the owner was deleted.

For example, a reader saw two records of segment 7, and asks again when 7 is merged and segment 8 has a record:

    cursor   run 1, segment 7, 2 records, 0 deletions
    told     all of segment 7, with the two records again, and the record of segment 8
    cursor   run 1, segment 8, 1 record, 0 deletions
"""

from __future__ import annotations

import os
import sqlite3
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from apiserver.events.changes import EVERYTHING, Changes, ChangesQuery, Cursor, OwnerChanges
from apiserver.events.model import EventType, Owner, SeriesName
from apiserver.events.queries import Range
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.embedded.bounds import BOUNDS, EmbeddedBounds
from apiserver.stores.events.embedded.hot import Memtable, Sent
from apiserver.stores.events.embedded.names import Registrar
from apiserver.stores.events.embedded.summaries import OwnerSummary, Place, Summary

_ENGINE = "embedded"


def write_marks(conn: sqlite3.Connection, table: Memtable, registrar: Registrar) -> None:
    """Mark the owners of a memtable, in the transaction that merges it. A new owner may have been deleted before."""
    conn.executemany(
        "UPDATE owners SET changed_segment = :segment, changed_record = :record,"
        " whole_record = iif(whole_segment, whole_record, :record),"
        " whole_segment = iif(whole_segment, whole_segment, :segment) WHERE id = :owner",
        [
            {"segment": table.segment, "record": hot.records, "owner": registrar.owner(owner)}
            for owner, hot in table.owners.items()
        ],
    )


def mark_deleted(conn: sqlite3.Connection, owners: Iterable[Owner], active: Memtable) -> None:
    """Mark owners, in the transaction that deletes their events. Who is at the same place as it is told of it."""
    conn.executemany(
        "UPDATE owners SET whole_segment = ?, whole_record = ? WHERE company = ? AND name = ? AND is_model = ?",
        [(active.segment, active.records + 1, owner.company, owner.id, int(owner.is_model)) for owner in owners],
    )


class _News(NamedTuple):
    """What came of an owner since a place, as far as it is in memory."""

    merged: Sequence[OwnerSummary]
    sent: Sequence[Sent]

    @property
    def copied(self) -> int:
        """How many series were copied."""
        return sum([len(sent.groups) for sent in self.sent])

    def changes(self) -> OwnerChanges:
        changes = OwnerChanges()
        for merged in self.merged:
            least, greatest = (column[merged.series].tolist() for column in merged.ends)
            _widen(changes, merged.names, least, greatest)
            for series, iterations in merged.samples.items():
                changes.widen(series, iterations)
            changes.log_lines += merged.lines
        for sent in self.sent:
            if sent.groups:
                least, greatest = (column.tolist() for column in sent.columns.ends(list(sent.groups.values())))
                _widen(changes, sent.groups, least, greatest)
            for _, series, iter in sent.samples:
                changes.widen(series, Range(iter, iter))
            changes.log_lines += sent.lines
        return changes


def _widen(changes: OwnerChanges, names: Iterable[Name], least: list[int], greatest: list[int]) -> None:
    for name, *ends in zip(names, least, greatest, strict=True):
        changes.widen(SeriesName(EventType.SCALAR, *name), Range(*ends))


class _Since(NamedTuple):
    """What a cursor says. `deletions` are those of this process; None if an earlier one gave the cursor."""

    place: Place
    deletions: int | None


class _Verdict(NamedTuple):
    """What memory says of an owner."""

    everything: bool = False
    """Everything may have changed."""
    news: _News | None = None
    may_have_changed: bool = False
    """Not all that came since is in memory: the owner's mark says whether there is more."""
    may_be_deleted: bool = False
    """This process does not know all deletions since: the owner's other mark says whether there was one."""


_NOTHING, _EVERYTHING = _Verdict(), _Verdict(everything=True)


@dataclass(slots=True)
class Look:
    """A look at some owners: a verdict on each that has anything to tell. The marks in the database say the rest."""

    cursor: Cursor
    most: int
    since: _Since | None = None
    """None: everything may have changed."""
    verdicts: dict[Owner, _Verdict] = field(default_factory=dict)
    copied: int = 0
    """How many series were copied."""

    def changes(self, conn: sqlite3.Connection) -> Changes:
        """What changed. The lock is not needed: if marks are newer than the look, too much is told at worst."""
        everything = {owner for owner, verdict in self.verdicts.items() if self._is_everything(conn, owner, verdict)}
        changes = Changes.all_of(self.cursor, everything)
        room = self.most
        for owner, verdict in self.verdicts.items():
            if verdict.news is not None and owner not in everything:
                changed = verdict.news.changes()
                room -= len(changed.series)
                changes.owners[owner] = changed if room >= 0 else EVERYTHING
        return changes

    def _is_everything(self, conn: sqlite3.Connection, owner: Owner, verdict: _Verdict) -> bool:
        """Whether everything of the owner may have changed, as memory or a mark says."""
        if verdict.everything or not (verdict.may_have_changed or verdict.may_be_deleted):
            return verdict.everything
        marks = conn.execute(
            "SELECT changed_segment, changed_record, whole_segment, whole_record FROM owners"
            " WHERE company = ? AND name = ? AND is_model = ?",
            (owner.company, owner.id, int(owner.is_model)),
        ).fetchone()
        if marks is None:  # nothing of the owner was merged, or all of it was deleted
            return verdict.may_be_deleted
        assert self.since is not None
        changed, whole = marks[:2], marks[2:]
        return (verdict.may_have_changed and changed > self.since.place) or (
            verdict.may_be_deleted and whole > self.since.place
        )


class Feed:
    """What came and went in this process, as far as it is remembered. The caller holds the lock of the memtables."""

    def __init__(self, merged: int, bounds: EmbeddedBounds = BOUNDS) -> None:
        """`merged`: the newest segment that an earlier process merged."""
        self._bounds = bounds
        self._run = int.from_bytes(os.urandom(6), "big")
        self._forgotten = merged
        """The newest segment of which nothing is in memory."""
        self._merged: deque[Summary] = deque()
        self._size = 0
        self._deletions = 0
        self._deleted: dict[Owner, int] = {}
        """By owner, the number of its last deletion."""
        self._brought: dict[Owner, int] = {}
        """By owner, the last such number that stands for events that were put beside merged ones."""
        self._forgotten_deletions = 0
        """The deletions up to this number may be of any owner."""

    def merged(self, summary: Summary) -> None:
        """Remember a segment that was just merged. If that is too much, forget the oldest ones."""
        self._merged.append(summary)
        self._size += summary.size
        while self._size > self._bounds.changed_series and len(self._merged) > 1:
            oldest = self._merged.popleft()
            self._size -= oldest.size
            self._forgotten = oldest.segment

    def deleted(self, owners: Collection[Owner], *, brings: bool, whole: bool) -> None:
        """Note that events of the owners were just deleted; `brings`: that others were put beside merged ones.

        `whole`: nothing of the owners is left that was merged. What came of them is forgotten then, as whoever has a
        place before the deletion is told that everything may have changed.
        """
        if len(self._deleted) > self._bounds.deletions:
            self._deleted.clear()
            self._brought.clear()
            self._forgotten_deletions = self._deletions
        self._deletions += 1
        self._deleted.update(dict.fromkeys(owners, self._deletions))
        if brings:
            self._brought.update(dict.fromkeys(owners, self._deletions))
        if whole:
            for summary in self._merged:
                for owner in summary.owners.keys() & owners:
                    del summary.owners[owner]
            self._merged = deque(summary for summary in self._merged if summary.owners)
            self._size = sum(summary.size for summary in self._merged)

    def look(self, active: Memtable, query: ChangesQuery) -> Look:
        """A look at no owner yet, with the cursor of now."""
        now = Place(active.segment, active.records)
        look = Look((_ENGINE, self._run, *now, self._deletions), query.most)
        match query.since:
            case [str(engine), int(run), int(segment), int(records), int(deletions)] if engine == _ENGINE:
                if (segment, records) <= now:
                    look.since = _Since(Place(segment, records), deletions if run == self._run else None)
        return look

    def look_for_new(self, active: Memtable, tables: Sequence[Memtable], owner: Owner, since: Cursor) -> Look:
        """A look at what came of an owner, without what went.

        Deletions since the cursor are passed over, unless one put events beside merged ones: those came, too.
        """
        look = self.look(active, ChangesQuery([owner], since))
        brought = self._brought.get(owner, self._forgotten_deletions)
        if look.since is not None and look.since.deletions is not None and look.since.deletions >= brought:
            look.since = look.since._replace(deletions=self._deletions)
        self.look_at(look, tables, [owner])
        return look

    def look_at(self, look: Look, tables: Sequence[Memtable], owners: Collection[Owner]) -> None:
        """Look at some more owners; `tables` are all memtables, oldest first.

        What came after the look began is found, too, and will be told again.
        """
        if look.since is None:
            look.verdicts.update(dict.fromkeys(owners, _EVERYTHING))
            return
        place, deletions = look.since
        summaries = [summary for summary in self._merged if summary.segment >= place.segment]
        tables = [table for table in tables if table.segment >= place.segment]
        quiet = _Verdict(may_have_changed=place.segment <= self._forgotten, may_be_deleted=deletions is None)
        for owner in owners:
            verdict = self._verdict(look, owner, summaries, tables, quiet)
            if verdict != _NOTHING:
                look.verdicts[owner] = verdict
                look.copied += verdict.news.copied if verdict.news is not None else 0

    def _verdict(
        self, look: Look, owner: Owner, summaries: Sequence[Summary], tables: Sequence[Memtable], quiet: _Verdict
    ) -> _Verdict:
        """What these segments, merged or in memory, say of an owner; `quiet` if nothing came of it in them."""
        assert look.since is not None
        place, deletions = look.since
        if deletions is not None and deletions < self._deleted.get(owner, self._forgotten_deletions):
            return _EVERYTHING
        merged = [part for summary in summaries if (part := summary.owners.get(owner)) and part.place > place]
        hot = [
            (table, points)
            for table in tables
            if (points := table.owners.get(owner)) and (table.segment, points.records) > place
        ]
        if not merged and not hot:
            return quiet
        if hot and look.copied > look.most:  # there is no room for its series
            return _EVERYTHING
        sent = [
            points.sent_since(table.start(place.records if table.segment == place.segment else 0))
            for table, points in hot
        ]
        return quiet._replace(news=_News(merged, sent))

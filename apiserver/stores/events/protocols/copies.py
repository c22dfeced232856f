"""What an engine promises to those who copy points and log lines from one store to another."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from typing import Protocol

from apiserver.events.model import Owner
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.codec.lines import Lines
from apiserver.stores.events.codec.points import WholePoints


class CopyStore(Protocol):
    """Reads and puts points and lines as they are kept. What holds for all methods is said at `EventStore`."""

    def whole_points(self, series: SeriesQuery) -> AsyncIterator[Sequence[WholePoints]]:
        """All points of the series, in parts of some 100,000 points; a part has each series once at most.

        The points of a series come in the order of their iterations.
        """

    async def put_points(self, owner: Owner, curves: Sequence[WholePoints]) -> None:
        """Keep curves of the owner, as `whole_points` answers them, like a batch that `add` has just taken.

        They survive kill -9 once this returns. If it fails, some of them may be kept; putting all again completes it.
        """

    def whole_lines(self, owner: Owner) -> AsyncIterator[Lines]:
        """All log lines of the owner in their order, in parts of some megabytes; no part is empty."""

    async def put_lines(self, owner: Owner, lines: Lines) -> None:
        """Keep log lines of the owner at their positions; a line whose position is taken is passed over.

        Sequences count from 0. The owner's log has other lines only if they were put, too. They survive kill -9 once
        this returns. If it fails, some of them may be kept; putting all again completes it. Lines that are added later
        come behind those of their timestamp.
        """

    async def known_bodies(self, owner: Owner) -> Collection[bytes]:
        """The ids (`body_id`) of all bodies of log lines that add nothing if they are sent again, perhaps with others.

        A body of which only a part is kept is not among them.
        """

    async def know_bodies(self, owner: Owner, ids: Collection[bytes]) -> None:
        """Take no lines of these bodies if they are sent from now on, until the owner's lines are deleted."""

"""A look at what an engine keeps: how much that is, and what is wrong with it. Servers may use it meanwhile."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import NamedTuple


class Finding(NamedTuple):
    """Something that is not as it should be."""

    store: str
    """Where it is: events, documents, files or audit."""
    kind: str
    """What is wrong, for programs: `damaged-chunk`."""
    place: str
    """Where it is in the store, for programs: the number of a chunk, the name of a file."""
    thing: str
    """What is not well, for people: "chunk 17 (task t1, metric loss, variant train) is damaged"."""
    meaning: str
    """What that means for a user: "its 4,096 points cannot be read"."""
    repair: str = ""
    """What a repair would do, and lose: "it would be set aside"; "" if there is none."""

    @property
    def line(self) -> str:
        """All of it in a line, for people."""
        repair = f". --repair: {self.repair}" if self.repair else ""
        return f"{self.store}: {self.thing}: {self.meaning}{repair}"


class Held(NamedTuple):
    """How much there is of something, such as the bytes of a file, or the number of documents in a collection."""

    name: str
    bytes: int | None = None
    """None: nobody can tell."""
    number: int | None = None
    what: str = ""
    """What is counted: "chunks"."""


class Inspection(ABC):
    """What an engine shows of itself. Nothing here changes anything but `repair`."""

    @abstractmethod
    async def held(self) -> list[Held]:
        """The parts of the store, such as files, and how much each has."""

    @abstractmethod
    def findings(self) -> AsyncIterator[Finding]:
        """What is not as it should be, as it is found."""

    async def repair(self, findings: Collection[Finding], kept: Path) -> list[str]:
        """Do what these findings say about `repair`; return what was done, in a line each.

        No server uses the store meanwhile. What is taken out is kept in the folder `kept`, which is made for it.
        """
        return []


class Scrubbed(NamedTuple):
    """A little that was checked beside a server."""

    place: str
    """Behind which to go on; "": all has been checked."""
    checked: int
    share: float
    """Which part of all this was, about."""
    findings: list[Finding]

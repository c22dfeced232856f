"""What an engine keeps in a data folder, as it is at one moment, read while a server may use the folder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass


class SnapshotError(Exception):
    """The folder cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a snapshot."""

    path: str
    """Its path in the data folder, with slashes."""
    size: int
    read: Callable[[int, int], bytes]
    """So many bytes from a place on, both multiples of 64 KB (the end of the file excepted)."""
    changes_in_place: bool = False
    """Whether the file is mostly the same the next time, with changes anywhere in it."""


class Snapshot(ABC):
    """A moment of what one engine keeps. Each method may raise SnapshotError."""

    @abstractmethod
    def begin(self) -> None:
        """Begin a moment now, and end the one before."""

    @abstractmethod
    def holds(self) -> bool:
        """Whether nothing changed since the moment, but for what is only appended."""

    @abstractmethod
    def parts(self) -> list[Part]:
        """The files of the moment."""

    @abstractmethod
    def counts(self) -> dict[str, int]:
        """How much there is at the moment, such as points, without reading them."""

    @abstractmethod
    def close(self) -> None:
        """End the moment."""

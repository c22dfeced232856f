"""Room for files: whether there is any is asked before an upload, and while its bytes come."""

from __future__ import annotations

from typing import Protocol, Self

from apiserver.rpc.call import Identity
from apiserver.stores.files.disk import Former


class Taken:
    """The room that one upload takes, for use in `with`: it gives back what was not stored. This one has no bounds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """The upload has ended."""

    def take(self, bytes: int) -> None:
        """Take room for more bytes of the file. Raises Refusal if there is none."""

    def complete(self) -> None:
        """All of the file came, and it is stored next. Raises Refusal if others have taken the room."""

    def stored(self, former: Former | None) -> None:
        """The file was stored, in place of `former`."""


class Room(Protocol):
    """Says whether there is room for files."""

    async def admit_file(self, sender: Identity, name: str, bytes: int) -> Taken:
        """Raise Refusal if there is no room for a file of about so many bytes. The upload takes the room later."""

    async def deleted_file(self, sender: Identity, name: str, former: Former) -> None:
        """A file was deleted."""

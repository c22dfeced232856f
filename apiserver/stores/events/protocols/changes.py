"""What an engine promises to readers who want to know what changes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from apiserver.events.changes import Changes, ChangesQuery


class ChangeFeed(Protocol):
    """Tells what changed, once or again and again. What holds for all methods is said at `EventStore`."""

    async def changes(self, query: ChangesQuery) -> Changes:
        """What changed of the owners since a cursor, which any server of the store may have made, at any time.

        All events that were added or replaced are in the answer, perhaps with others. Reads after it see them. A cursor
        that the store does not understand is answered as if everything had changed.
        """

    def watch(self, query: ChangesQuery) -> AsyncGenerator[Changes, None]:
        """The changes since the query's cursor at once, even if there are none; then further ones when there are some.

        Each `Changes` follows the one before. Changes that come while the reader does something else come together. The
        reader closes the generator (`contextlib.aclosing`). Raises EventStoreError if the store is closed.
        """

"""What every engine of events shows of itself."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator

from apiserver.stores.events.usage import Usage
from apiserver.stores.inspection import Inspection


class EventInspection(Inspection):
    """A look at what an engine of events keeps."""

    @abstractmethod
    async def usage(self) -> Usage:
        """How much is kept of each owner."""

    def texts(self) -> AsyncIterator[list[bytes]] | None:
        """The images and plots as JSON, some at a time: they name files. None: that would take too long."""
        return None

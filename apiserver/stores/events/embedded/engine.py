"""The embedded engine of events."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING

from apiserver.settings.settings import Settings
from apiserver.stores.data_folder import DataFolder
from apiserver.stores.engine import Engine
from apiserver.stores.reserve import Reserve
from apiserver.stores.snapshots import Snapshot

if TYPE_CHECKING:
    from apiserver.stores.events.base import EventStore
    from apiserver.stores.events.embedded.bounds import EmbeddedBounds
    from apiserver.stores.inspection import Inspection, Scrubbed


class EmbeddedEngine(Engine["EventStore"]):
    """The folder `events` in the data folder."""

    bounds: EmbeddedBounds | None = None
    """Those of stores, if they are not those of a server."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, {str(settings.data.resolve())})
        if settings.events_password or settings.events_api_key:
            secrets = "events_password and events_api_key"
            raise ValueError(f"{secrets} are for an engine with an address, but events is embedded")

    def store(self, folder: DataFolder) -> EventStore:
        from apiserver.stores.events.embedded.bounds import BOUNDS
        from apiserver.stores.events.embedded.store import EmbeddedEventStore

        return EmbeddedEventStore(
            folder.events,
            fsync=self.settings.durability == "fsync",
            merge_points=self.settings.merge_events,
            max_unmerged_bytes=self.settings.max_unmerged_bytes,
            reserve=Reserve(folder.reserve, self.settings.reserve_bytes),
            bounds=self.bounds or BOUNDS,
        )

    def scrub(self, folder: DataFolder) -> Callable[[str], Scrubbed]:
        from apiserver.stores.events.embedded.scrubbing import scrub

        return partial(scrub, folder.events)

    def inspection(self, folder: DataFolder) -> AbstractAsyncContextManager[Inspection]:
        from apiserver.stores.events.embedded.inspection import looking_at

        return looking_at(folder.events)

    def snapshot(self, folder: DataFolder) -> Snapshot:
        from apiserver.stores.events.embedded.snapshot import EventsSnapshot

        return EventsSnapshot(folder.events)

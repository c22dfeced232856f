"""The parts of a server, below the apps that answer."""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.data.exports import Exports
from apiserver.operating.metrics.sharing import SharedCounters
from apiserver.server.traces import Traces
from apiserver.server.upkeep import Upkeep
from apiserver.services.backend import Backend
from apiserver.stores.data_folder import DataFolder
from apiserver.stores.files.disk import FileStore


@dataclass(frozen=True, slots=True)
class Parts:
    """What a server is made of. `Opening` opens them, `ways.py` builds the apps that use them."""

    folder: DataFolder
    files: FileStore
    backend: Backend
    upkeep: Upkeep
    exports: Exports
    counters: SharedCounters
    traces: Traces | None

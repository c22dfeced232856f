"""What the services work with: the stores, the settings, and the endpoint registry they fill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from apiserver.aggregation.scroll import Scrolls
from apiserver.files.deletions import FileDeletions
from apiserver.files.links import FileLinks
from apiserver.rpc.auth import Authenticator
from apiserver.rpc.call import Call as RpcCall
from apiserver.rpc.registry import Registry
from apiserver.services.access.attempts import Attempts
from apiserver.services.history.store import History
from apiserver.services.last_metrics import LastMetrics
from apiserver.services.remembered import Remembered
from apiserver.services.series_bound import SeriesBound
from apiserver.settings import Settings
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.scoped import CompanyDocuments, VisibleDocuments
from apiserver.stores.events.base import EventStore


@dataclass(slots=True)
class Backend:
    """Everything a handler may reach, made once by `create_app`."""

    settings: Settings
    documents: DocumentStore
    events: EventStore
    last_metrics: LastMetrics
    series_bound: SeriesBound
    history: History
    auth: Authenticator
    attempts: Attempts
    scrolls: Scrolls
    remembered: Remembered
    file_deletions: FileDeletions
    file_links: FileLinks

    def documents_of(self, company: str) -> CompanyDocuments:
        """The documents that a company may change."""
        return CompanyDocuments(self.documents, company)

    def visible_to(self, company: str) -> VisibleDocuments:
        """The documents that a company may read."""
        return VisibleDocuments(self.documents, company)


Call: TypeAlias = RpcCall[Backend]

registry = Registry()
endpoint = registry.endpoint


def documents(call: Call) -> CompanyDocuments:
    """The documents the caller may change."""
    return call.backend.documents_of(call.identity.company)


def visible(call: Call, request: Mapping[str, Any] | None = None) -> VisibleDocuments:
    """The documents the caller may read; a request with `allow_public: false` asks for none that are public."""
    if request is not None and not request.get("allow_public", True):
        return documents(call)
    return call.backend.visible_to(call.identity.company)

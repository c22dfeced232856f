"""The tools of handlers: the stores, the settings, and the registry that they enter themselves in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from apiserver.common.counters import Counters
from apiserver.common.seldom import Seldom
from apiserver.events.model import Owner
from apiserver.fileserver.deletions import FileDeletions
from apiserver.fileserver.links import FileLinks
from apiserver.live.hub import Hub
from apiserver.reading.scroll import Scrolls
from apiserver.rpc.auth import Authenticator
from apiserver.rpc.call import Call as RpcCall
from apiserver.rpc.call import Identity
from apiserver.rpc.registry import Registry
from apiserver.services.access.attempts import Attempts
from apiserver.services.access.key_uses import KeyUses
from apiserver.services.access.oidc.provider import Provider
from apiserver.services.bounds import CallBounds
from apiserver.services.documents.cache import DocumentCache
from apiserver.services.events.last_metrics import LastMetrics
from apiserver.services.history.store import History
from apiserver.services.quotas.quotas import Quotas
from apiserver.services.quotas.series_limit import SeriesLimit
from apiserver.services.quotas.usage import Usages
from apiserver.settings.settings import Settings
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.scoped import CompanyDocuments, PartOfStore, VisibleDocuments
from apiserver.stores.documents.within import WithinProject
from apiserver.stores.events.base import EventStore


@dataclass(slots=True)
class Backend:
    """Everything that a handler may use. `create_app` makes it once."""

    settings: Settings
    documents: DocumentStore
    events: EventStore
    last_metrics: LastMetrics
    series_limit: SeriesLimit
    history: History
    auth: Authenticator
    key_uses: KeyUses
    attempts: Attempts
    provider: Provider | None
    scrolls: Scrolls
    document_cache: DocumentCache
    file_deletions: FileDeletions
    file_links: FileLinks
    counters: Counters
    live: Hub
    usages: Usages
    quotas: Quotas | None = None
    """None if the settings have none."""
    bounds: CallBounds = field(default_factory=CallBounds)
    told: Seldom = field(default_factory=Seldom)
    """The facts of callers that the log tells."""

    async def delete_events(self, owners: Sequence[Owner]) -> int:
        """Delete all events of owners, and forget the owners; returns how many events there were."""
        deleted = await self.events.delete(owners)
        self.series_limit.forget(owners)
        return deleted

    def documents_of(self, caller: Identity) -> CompanyDocuments:
        """The documents that a caller may change: of their company, or of the project that their key is for."""
        return CompanyDocuments(self._store_of(caller), caller.company)

    def visible_to(self, caller: Identity) -> VisibleDocuments:
        """The documents that a caller may read."""
        return VisibleDocuments(self._store_of(caller), caller.company)

    def _store_of(self, caller: Identity) -> PartOfStore:
        project = caller.grant.project
        return (
            self.documents if project is None else WithinProject(self.documents, caller.company, project, caller.user)
        )


Call: TypeAlias = RpcCall[Backend]

registry = Registry()
endpoint = registry.endpoint


def documents(call: Call) -> CompanyDocuments:
    """The documents the caller may change."""
    return call.backend.documents_of(call.identity)


def visible(call: Call, request: Mapping[str, Any] | None = None) -> VisibleDocuments:
    """The documents the caller may read. Public ones are left out if the request says `allow_public: false`."""
    if request is not None and not request.get("allow_public", True):
        return documents(call)
    return call.backend.visible_to(call.identity)

"""Builds what handlers use: the stores, and the services above them."""

from __future__ import annotations

import dataclasses

from apiserver.common.counters import Counters
from apiserver.common.seldom import Seldom
from apiserver.fileserver.deletions import FileDeletions
from apiserver.fileserver.links import FileLinks
from apiserver.http import descriptors
from apiserver.live.hub import Hub
from apiserver.reading.scroll import Scrolls
from apiserver.rpc.auth import Authenticator
from apiserver.server.bounds import Bounds
from apiserver.services.access import identities, proxy_users
from apiserver.services.access.attempts import Attempts
from apiserver.services.access.key_uses import KeyUses
from apiserver.services.access.oidc.provider import Provider
from apiserver.services.backend import Backend
from apiserver.services.documents.cache import DocumentCache
from apiserver.services.events.last_metrics import LastMetrics
from apiserver.services.history.store import History
from apiserver.services.quotas.quotas import Quotas
from apiserver.services.quotas.series_limit import SeriesLimit
from apiserver.services.quotas.usage import Usages
from apiserver.settings.settings import Settings
from apiserver.stores.data_folder import DataFolder
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.engines import document_engine, event_engine
from apiserver.stores.files.disk import FileStore


def build_backend(settings: Settings, bounds: Bounds, folder: DataFolder, files: FileStore) -> Backend:
    """The backend on the engines of the settings. Nothing is open yet."""
    documents = document_engine(settings).store(folder)
    events = event_engine(settings).store(folder)
    counters = Counters()
    key_uses = KeyUses(documents)
    scrolls = Scrolls(settings.token_secret)
    series_limit = SeriesLimit(events, settings.max_series_per_task)
    last_metrics = LastMetrics(events, documents, series_limit.forget, bounds.last_metrics)
    usages = Usages(events, documents, folder.files, bounds.clock)
    streams = min(bounds.live.streams, descriptors.connection_limit(settings.max_connections) // 2)
    quotas = None
    if settings.quotas:
        quotas = Quotas(settings.quotas, events, documents, last_metrics, usages, counters, bounds.clock)
    return Backend(
        settings=settings,
        documents=documents,
        events=events,
        last_metrics=last_metrics,
        series_limit=series_limit,
        history=History(events, documents, days=settings.history_days),
        auth=_authenticator(settings, bounds, documents, key_uses),
        key_uses=key_uses,
        attempts=Attempts(bounds.clock),
        provider=Provider(settings, bounds=bounds.provider) if settings.oidc_issuer else None,
        scrolls=scrolls,
        document_cache=DocumentCache(documents),
        file_deletions=FileDeletions(files, documents, replaced_days=settings.replaced_files_days),
        file_links=FileLinks(settings.token_secret),
        counters=counters,
        usages=usages,
        bounds=bounds.calls,
        told=Seldom(bounds.clock),
        quotas=quotas,
        live=Hub(events, documents, scrolls, dataclasses.replace(bounds.live, streams=streams)),
    )


def _authenticator(settings: Settings, bounds: Bounds, documents: DocumentStore, key_uses: KeyUses) -> Authenticator:
    identities.bound_cache(documents, clock=bounds.clock)
    return Authenticator(
        settings.token_secret,
        identities.lookup(documents, key_uses, Attempts(bounds.clock)),
        current=identities.current(documents, key_uses),
        become=identities.become(documents),
        proxy_header=settings.proxy_user_header.lower(),
        of_proxy=proxy_users.of_proxy(documents, settings) if settings.proxy_user_header else None,
        allowed_origins=settings.allowed_origins,
    )

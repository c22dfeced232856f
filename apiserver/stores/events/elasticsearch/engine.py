"""Elasticsearch as an engine of events."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from apiserver.settings.settings import Settings
from apiserver.stores.data_folder import DataFolder
from apiserver.stores.engine import Engine
from apiserver.stores.events.elasticsearch.address import elasticsearch_address
from apiserver.stores.migrations import Step, Target

if TYPE_CHECKING:
    from apiserver.stores.events.base import EventStore, EventStoreMoment
    from apiserver.stores.events.elasticsearch.bounds import ElasticsearchBounds
    from apiserver.stores.inspection import Inspection


class ElasticsearchEngine(Engine["EventStore"]):
    """The indices of one prefix in a cluster."""

    form = "elasticsearch://[user[:password]@]host[:9200][,host…][/prefix][?tls=true&ca=/path&verify=false&api_key=…]"
    shared = True
    bounds: ElasticsearchBounds | None = None
    """Those of stores, if they are not those of a server."""

    def __init__(self, settings: Settings) -> None:
        secrets = {"password": settings.events_password, "api_key": settings.events_api_key}
        self.address = elasticsearch_address(settings.events, **secrets)
        super().__init__(settings, {f"{host}/{self.address.prefix}" for host in self.address.hosts})

    def store(self, folder: DataFolder) -> EventStore:
        from apiserver.stores.events.elasticsearch.bounds import BOUNDS
        from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore

        strict = self.settings.consistency == "strict"
        migrate, bounds = self.settings.migrate_at_start, self.bounds or BOUNDS
        return ElasticsearchEventStore(self.address, strict=strict, migrate=migrate, bounds=bounds)

    def inspection(self, folder: DataFolder) -> AbstractAsyncContextManager[Inspection]:
        from apiserver.stores.events.elasticsearch.inspection import looking_at

        return looking_at(self.address)

    async def advice(self) -> list[str]:
        from apiserver.stores.events.elasticsearch.advice import advice

        return await advice(self.address)

    def moment(self) -> EventStoreMoment:
        from apiserver.stores.events.elasticsearch.moment import ElasticsearchMoment

        return ElasticsearchMoment(self.address)

    def schema(self) -> AbstractAsyncContextManager[tuple[Target, list[Step]]]:
        from apiserver.stores.events.elasticsearch.migrations import schema_at

        return schema_at(self.address)

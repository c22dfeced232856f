"""Where a ClearML server's data are read: its two databases, or its API."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Protocol

from apiserver.importing.api import Api, ApiDocuments, ApiEvents
from apiserver.importing.documents import Documents
from apiserver.importing.elasticsearch import ElasticsearchEvents
from apiserver.importing.events import Events
from apiserver.importing.mongodb import MongoDocuments
from apiserver.stores import addresses
from apiserver.stores.addresses import ElasticsearchAddress


class Source(Protocol):
    """What a ClearML server has, once it is asked for."""

    async def open(self, stack: AsyncExitStack) -> tuple[Documents, Events]:
        """Its documents and events, until the stack is closed; ImportFailed when they cannot be had."""


@dataclass(frozen=True, slots=True)
class Databases:
    """All companies of a server, in its MongoDB and its Elasticsearch."""

    mongodb: str
    elasticsearch: ElasticsearchAddress

    async def open(self, stack: AsyncExitStack) -> tuple[Documents, Events]:
        documents = MongoDocuments(self.mongodb)
        stack.push_async_callback(documents.close)
        events = ElasticsearchEvents(self.elasticsearch)
        stack.push_async_callback(events.close)
        await documents.open()
        await events.open()
        return documents, events


@dataclass(frozen=True, slots=True)
class OverApi:
    """What the user of an access key may read."""

    url: str
    key: str
    secret: str = field(repr=False)

    async def open(self, stack: AsyncExitStack) -> tuple[Documents, Events]:
        api = Api(self.url, self.key, self.secret)
        stack.push_async_callback(api.close)
        await api.open()
        return ApiDocuments(api), ApiEvents(api)


def elasticsearch_of(said: str) -> ElasticsearchAddress:
    """The address that the command line names, as a setting would or by http://…; ValueError says what is wrong."""
    scheme, separator, rest = said.partition("://")
    if scheme in ("http", "https"):
        joint = "&" if "?" in rest else "?"
        said = f"elasticsearch{separator}{rest}{f'{joint}tls=true' if scheme == 'https' else ''}"
    return addresses.elasticsearch(said)

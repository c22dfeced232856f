"""The places that a ClearML server's data can be read from: its two databases, or its API."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Protocol

from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress, elasticsearch_address
from apiserver.transfer.importing.clearml.api import SIZES, Api, ApiDocuments, ApiEvents, PageSizes
from apiserver.transfer.importing.clearml.documents import SourceDocuments
from apiserver.transfer.importing.clearml.elasticsearch import ElasticsearchEvents
from apiserver.transfer.importing.clearml.events import SourceEvents
from apiserver.transfer.importing.clearml.mongodb import MongoDocuments


class ClearmlSource(Protocol):
    """A ClearML server whose data can be read."""

    async def open(self, stack: AsyncExitStack) -> tuple[SourceDocuments, SourceEvents]:
        """Its documents and events, until the stack is closed. Raises ImportFailed."""


@dataclass(frozen=True, slots=True)
class Databases:
    """The data of all companies, in a server's MongoDB and Elasticsearch."""

    mongodb: str
    elasticsearch: ElasticsearchAddress

    async def open(self, stack: AsyncExitStack) -> tuple[SourceDocuments, SourceEvents]:
        documents = MongoDocuments(self.mongodb)
        stack.push_async_callback(documents.close)
        events = ElasticsearchEvents(self.elasticsearch)
        stack.push_async_callback(events.close)
        await documents.open()
        await events.open()
        return documents, events


@dataclass(frozen=True, slots=True)
class OverApi:
    """The data that the owner of an access key may read, over a server's API."""

    url: str
    key: str
    secret: str = field(repr=False)
    sizes: PageSizes = SIZES

    async def open(self, stack: AsyncExitStack) -> tuple[SourceDocuments, SourceEvents]:
        api = Api(self.url, self.key, self.secret, self.sizes)
        stack.push_async_callback(api.close)
        await api.open()
        return ApiDocuments(api), ApiEvents(api)


def elasticsearch_of(said: str) -> ElasticsearchAddress:
    """The address on the command line: http[s]://…, or elasticsearch://… as in the settings. Raises ValueError."""
    scheme, separator, rest = said.partition("://")
    if scheme in ("http", "https"):
        joint = "&" if "?" in rest else "?"
        said = f"elasticsearch{separator}{rest}{f'{joint}tls=true' if scheme == 'https' else ''}"
    elif scheme != "elasticsearch":
        raise ValueError("--elasticsearch needs http[s]://… or elasticsearch://…")
    return elasticsearch_address(said)

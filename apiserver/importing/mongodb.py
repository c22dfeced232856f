"""The databases of a ClearML server, by PyMongo's own client: it reads documents of MongoDB as JSON, page by page."""

from __future__ import annotations

import base64
import math
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from bson.codec_options import CodecOptions, DatetimeConversion
from bson.errors import BSONError
from pymongo import AsyncMongoClient
from pymongo.errors import PyMongoError

from apiserver.importing.report import ImportFailed
from apiserver.stores.documents.base import Document
from apiserver.times import utc_text

BACKEND, AUTH = "backend", "auth"
#: Servers from this version on have the documents that `mapping` knows; newer ones changed none of them since.
_LEAST_VERSION = (1, 3, 0)
_PAGE = 200
#: Milliseconds that a page may take: what accepts connections and answers nothing is not waited for.
_TIMEOUT = 60_000
#: The field in which ClearML's server notes of some objects which class they are of there.
_CLASS = "_cls"
#: Text that is no UTF-8, and times that no calendar has, shall not cost a whole page.
_OPTIONS: CodecOptions[dict[str, Any]] = CodecOptions(
    unicode_decode_error_handler="replace", datetime_conversion=DatetimeConversion.DATETIME_AUTO
)


class MongoDocuments:
    """The documents of the databases `backend` and `auth` at one address, for use in `async with`."""

    escaped = True

    def __init__(self, uri: str) -> None:
        with _errors():
            self._client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(
                uri, appname="apiserver", serverSelectionTimeoutMS=5000, connectTimeoutMS=5000, socketTimeoutMS=_TIMEOUT
            )

    async def open(self) -> None:
        """Connect; ImportFailed when that is not possible, or the documents are those of too old a server."""
        with _errors():
            await self._client.admin.command("ping")
            names = await self._client.list_database_names()
            versions = [one.get("num") async for one in self._client[BACKEND]["versions"].find()]
        if BACKEND not in names:
            raise ImportFailed(f"this MongoDB has no database '{BACKEND}': it is not that of a ClearML server")
        newest = max(map(_version, versions), default=_LEAST_VERSION)
        if newest < _LEAST_VERSION:
            raise ImportFailed(
                f"the databases are those of ClearML server {'.'.join(map(str, newest))}: start one of version "
                f"{'.'.join(map(str, _LEAST_VERSION))} or later on them once, which brings them up to date"
            )

    async def close(self) -> None:
        """Let go of every connection."""
        await self._client.close()

    async def home(self) -> str:
        """The company that most tasks are of; ImportFailed when there is none."""
        backend = self._client[BACKEND]
        with _errors():
            companies = sorted([str(one["_id"]) async for one in backend["company"].find({}, {"_id": 1})])
            tasks = {company: await backend["task"].count_documents({"company": company}) for company in companies}
        if not companies:
            raise ImportFailed("there is no company in these databases: they are not those of a ClearML server")
        return max(companies, key=lambda company: tasks[company])

    async def total(self, kind: str, database: str = BACKEND) -> int:
        """How many documents there are of a kind."""
        with _errors():
            return await self._client[database][kind].estimated_document_count()

    async def pages(self, kind: str, database: str = BACKEND) -> AsyncIterator[list[Document]]:
        """All documents of a kind as JSON, in the order of their ids."""
        collection = self._client[database].get_collection(kind, codec_options=_OPTIONS)
        query: dict[str, Any] = {}
        while True:
            with _errors():
                page = await collection.find(query).sort("_id", 1).limit(_PAGE).to_list()
            if page:
                yield [plain(document) for document in page]
            if len(page) < _PAGE:
                return
            query = {"_id": {"$gt": page[-1]["_id"]}}


def plain(value: Any) -> Any:
    """A value of BSON as JSON: times as text, or null for one that no calendar has; no NaN, which JSON has not."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items() if name != _CLASS}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        return utc_text(value.replace(tzinfo=UTC))
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bool | str) or value is None:
        return value
    return int(value) if isinstance(value, int) else None if hasattr(value, "as_datetime") else str(value)


def _version(number: Any) -> tuple[int, ...]:
    return tuple(int(part) for part in str(number).split(".") if part.isdigit())


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except (PyMongoError, BSONError, OSError) as error:
        raise ImportFailed(f"MongoDB: {error}") from error

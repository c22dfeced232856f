"""Reads the databases of a ClearML server with PyMongo, page by page, and converts the documents to JSON."""

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

from apiserver.common.times import utc_text
from apiserver.stores.documents.query import Document
from apiserver.transfer.importing.report import ImportFailed

BACKEND = "backend"
#: `mapping` knows the documents of this version of ClearML's server. Later versions did not change them.
_LEAST_VERSION = (1, 3, 0)
_PAGE = 200
#: Milliseconds that MongoDB has for an answer.
_TIMEOUT = 60_000
#: The field with the name of a Python class, which ClearML's server adds to some objects.
_CLASS = "_cls"
#: Text that is not UTF-8, and times outside the calendar, must not make a whole page fail.
_OPTIONS: CodecOptions[dict[str, Any]] = CodecOptions(
    unicode_decode_error_handler="replace", datetime_conversion=DatetimeConversion.DATETIME_AUTO
)


class MongoDocuments:
    """The documents in the databases `backend` and `auth` at one address."""

    escaped = True

    def __init__(self, uri: str) -> None:
        with _errors():
            self._client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(
                uri, appname="apiserver", serverSelectionTimeoutMS=5000, connectTimeoutMS=5000, socketTimeoutMS=_TIMEOUT
            )

    async def open(self) -> None:
        """Connect; ImportFailed if that is not possible, or the documents are of too old a server."""
        with _errors():
            await self._client.admin.command("ping")
            names = await self._client.list_database_names()
            versions = [one.get("num") async for one in self._client[BACKEND]["versions"].find()]
        if BACKEND not in names:
            raise ImportFailed(f"this MongoDB has no database '{BACKEND}', so it is not that of a ClearML server")
        newest = max(map(_version, versions), default=_LEAST_VERSION)
        if newest < _LEAST_VERSION:
            raise ImportFailed(
                f"the databases are those of ClearML server {'.'.join(map(str, newest))}: start version "
                f"{'.'.join(map(str, _LEAST_VERSION))} or later on them once, to bring them up to date"
            )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def home(self) -> str:
        """The company with the most tasks; ImportFailed if there is no company."""
        backend = self._client[BACKEND]
        with _errors():
            companies = sorted([str(one["_id"]) async for one in backend["company"].find({}, {"_id": 1})])
            tasks = {company: await backend["task"].count_documents({"company": company}) for company in companies}
        if not companies:
            raise ImportFailed("these databases have no company, so they are not those of a ClearML server")
        return max(companies, key=lambda company: tasks[company])

    async def total(self, kind: str, database: str = BACKEND) -> int:
        """About how many documents of a kind there are."""
        with _errors():
            return await self._client[database][kind].estimated_document_count()

    async def pages(self, kind: str, database: str = BACKEND) -> AsyncIterator[list[Document]]:
        """Pages of all documents of a kind as JSON, by id."""
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
    """A BSON value as JSON. Times become text, or null if they are outside the calendar; NaN becomes null."""
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

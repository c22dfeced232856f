"""What was taken, in a collection of the target: for each thing of the source, a mark that differs when it changes."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Any

import orjson

from apiserver.copying.copied import Say, patiently
from apiserver.stores.documents.base import DocumentStore

COLLECTION = "imported"


class Marks:
    """The marks of one target, read and written by pages."""

    def __init__(self, documents: DocumentStore, say: Say) -> None:
        self._documents = documents
        self._say = say

    async def of(self, names: Collection[str]) -> dict[str, str]:
        """The marks of those that have one."""
        asked = {"id": {"$in": list(names)}}
        found = await patiently(self._say, self._documents.find, COLLECTION, asked)
        return {one["id"]: one["mark"] for one in found}

    async def put(self, marks: Mapping[str, str]) -> None:
        """Remember these."""
        if marks:
            await patiently(self._say, self._documents.delete, COLLECTION, {"id": {"$in": list(marks)}})
            rows = [{"id": name, "mark": mark} for name, mark in marks.items()]
            await patiently(self._say, self._documents.insert, COLLECTION, rows)


def mark(*parts: Any) -> str:
    """A mark of JSON values."""
    return hashlib.blake2b(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS), digest_size=12).hexdigest()

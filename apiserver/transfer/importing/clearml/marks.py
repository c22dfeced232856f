"""Remembers what was imported: a collection of the target holds a mark for each document and for each owner's events.

A mark is a digest. If it differs in the next run, the source has changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Any

import orjson

from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.query import In
from apiserver.transfer.copying.retrying import Say, patiently

COLLECTION = "imported"


class ImportMarks:
    """The marks in one target, read and written in pages."""

    def __init__(self, documents: DocumentStore, say: Say) -> None:
        self._documents = documents
        self._say = say

    async def of(self, names: Collection[str]) -> dict[str, str]:
        """The marks of the names; a name without a mark is left out."""
        asked = {"id": In(list(names))}
        found = await patiently(self._say, self._documents.find, COLLECTION, asked)
        return {one["id"]: one["mark"] for one in found}

    async def put(self, marks: Mapping[str, str]) -> None:
        """Store marks, by name."""
        if marks:
            await patiently(self._say, self._documents.delete, COLLECTION, {"id": In(list(marks))})
            rows = [{"id": name, "mark": mark} for name, mark in marks.items()]
            await patiently(self._say, self._documents.insert, COLLECTION, rows)


def mark(*parts: Any) -> str:
    """The mark of some JSON values."""
    return hashlib.blake2b(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS), digest_size=12).hexdigest()

"""How MongoDB keeps documents: as they are, with `id` as `_id`, and with two more fields that callers never see.

A name that begins with "_" gets another "_" in front, so that it cannot be one of these fields.

`_rev` changes with each change of the document. So a change that is made here, of a document that was read, is written
only if nobody changed it meanwhile. `_unique` has an object for each unique index, with the values of its fields, if
the document has all of them. MongoDB's own unique index would count a missing field as null, and so as the same in two
documents. For example, the project `{"id": "p1", "company": "c", "name": "n", "_x": 1}` is kept as

    {"_id": "p1", "_rev": ObjectId(…), "company": "c", "name": "n", "__x": 1,
     "_unique": {"company,name": {"company": "c", "name": "n"}}}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import bson
import orjson
from bson.objectid import ObjectId

from apiserver.stores.documents.base import Index, InvalidDocument
from apiserver.stores.documents.dialect.documents import check_name, identity_of, key_of
from apiserver.stores.documents.dialect.paths import Path, index_of, parse
from apiserver.stores.documents.dialect.values import MISSING
from apiserver.stores.documents.mongo.errors import TOO_LARGE, errors
from apiserver.stores.documents.query import Document

REVISION = "_rev"
UNIQUE = "_unique"
_SUMMARY_DEPTH = 3
_LARGEST = 16 * 2**20
_MAY_BE_TOO_LARGE = 2 * 2**20
"""Bytes of JSON above which a document is measured as BSON, which may have several times as many."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of one collection: its indexed fields, those of each unique index, and the fields that grow large."""

    collection: str
    keys: tuple[Path, ...]
    unique: tuple[tuple[Path, ...], ...]
    large: tuple[str, ...]

    @classmethod
    def of(cls, collection: str, indexes: Iterable[Index], large: Sequence[str] = ()) -> Layout:
        """The layout of a collection with these indexes and large fields."""
        check_name(collection)
        own = [index for index in indexes if index.collection == collection]
        keys = dict.fromkeys(parse(field) for index in own for field in index.fields)
        unique = tuple(tuple(map(parse, index.fields)) for index in own if index.unique)
        return cls(collection, tuple(keys), unique, tuple(large))

    def encode(self, document: Document, revision: ObjectId) -> dict[str, Any]:
        """The stored form of a document; InvalidDocument if it cannot be kept."""
        identity = identity_of(self.collection, document)
        self._check_keys(document, document.keys())
        fields = {_stored(name): value for name, value in plain(document).items()}
        unique = self._unique(document)
        return {"_id": identity, REVISION: revision, **fields, **({UNIQUE: unique} if unique else {})}

    def changes(self, document: Document, paths: Sequence[Path], revision: ObjectId) -> dict[str, Any]:
        """The update that writes a document's values at the paths; InvalidDocument if it cannot be kept."""
        roots = {path[0] for path in paths}
        self._check_keys(document, roots)
        places = {place: _get(document, place) for place in self._places(paths) if place != ("id",)}
        written = plain({name_of(place): value for place, value in places.items() if value is not MISSING})
        removed = [name_of(place) for place, value in places.items() if value is MISSING]
        if roots & self.unique_roots:
            unique = self._unique(document)
            written |= {UNIQUE: unique} if unique else {}
            removed += [] if unique else [UNIQUE]
        changes = {"$set": {**written, REVISION: revision}}
        return {**changes, "$unset": dict.fromkeys(removed, 1)} if removed else changes

    @property
    def unique_roots(self) -> set[str]:
        """The top-level fields of all unique indexes."""
        return {path[0] for paths in self.unique for path in paths}

    def _places(self, paths: Sequence[Path]) -> list[Path]:
        """The paths to write for changes at `paths`: whole top-level fields, but only changed parts of large ones."""
        return outermost(before_index(path[:_SUMMARY_DEPTH]) if path[0] in self.large else path[:1] for path in paths)

    def _check_keys(self, document: Document, names: Iterable[str]) -> None:
        for path in self.keys:
            if path[0] in names:
                key_of(self.collection, document, path)

    def _unique(self, document: Document) -> dict[str, dict[str, Any]]:
        found = {}
        for paths in self.unique:
            values = {_member(path): key_of(self.collection, document, path) for path in paths}
            if None not in values.values():
                found[",".join(values)] = values
        return found


def index_key(index: Index) -> dict[str, int]:
    """The key of MongoDB's index for an index of ours. MongoDB can walk it in either direction.

    `_id` comes last, as in every sort. Unless an index has the whole order, MongoDB sorts all documents that match.
    """
    return {**{name_of(parse(field)): 1 for field in index.fields}, "_id": 1}


def unique_key(index: Index) -> dict[str, int]:
    """The key of MongoDB's index that makes an index of ours unique. It is another one than that of `index_key`."""
    return {f"{UNIQUE}.{','.join(_member(parse(field)) for field in index.fields)}": 1}


def decode(stored: Mapping[str, Any]) -> Document:
    """The document, or the part of it that was read, from its stored form."""
    fields = {name.removeprefix("_"): value for name, value in stored.items() if name[:1] != "_" or name[:2] == "__"}
    return {"id": stored["_id"], **fields}


def name_of(path: Path) -> str:
    """The name of a path in MongoDB."""
    return ".".join((_stored(path[0]), *path[1:]))


def before_index(path: Path) -> Path:
    """The path up to the first name that may be the index of a list's item."""
    end = next((place for place, name in enumerate(path) if place and index_of(name) is not None), len(path))
    return path[:end]


def outermost(paths: Iterable[Path]) -> list[Path]:
    """The paths without those that lie inside another one."""
    found = set(paths)
    return sorted(path for path in found if not any(path[:length] in found for length in range(1, len(path))))


def plain(value: dict[str, Any]) -> dict[str, Any]:
    """A copy with only JSON's values, and null for NaN and infinities; InvalidDocument if it cannot be kept."""
    try:
        text = orjson.dumps(value)
    except TypeError as error:
        raise InvalidDocument(f"not a JSON value: {error}") from None
    copy: dict[str, Any] = orjson.loads(text)
    if b'"$ref"' in text and _holds_reference(copy):
        raise InvalidDocument(
            "MongoDB reads an object with the fields '$ref' and '$id' as a reference, not as an object"
        )
    if len(text) > _MAY_BE_TOO_LARGE:
        with errors():
            if len(bson.encode(copy)) > _LARGEST:
                raise InvalidDocument(TOO_LARGE)
    return copy


def _holds_reference(value: Any) -> bool:
    if isinstance(value, dict):
        return value.keys() >= {"$ref", "$id"} or any(map(_holds_reference, value.values()))
    return isinstance(value, list) and any(map(_holds_reference, value))


def _get(value: Any, path: Path) -> Any:
    for name in path:
        value = value.get(name, MISSING) if isinstance(value, dict) else MISSING
    return value


def _stored(name: str) -> str:
    return "_id" if name == "id" else f"_{name}" if name[:1] == "_" else name


def _member(path: Path) -> str:
    return "/".join(path)

"""How documents lie in MongoDB: as they are, with `id` as `_id`, and two fields that nobody outside sees.

A name that begins with "_" gets another one in front, so that none is the engine's own.

`_rev` is another value after each change, so that a change made here of what was read is written only if nothing
changed meanwhile. `_unique` has, for each unique index whose fields are all there, an object of their values: MongoDB
counts a missing field as null, and documents without all fields must never count as the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import bson
import orjson
from bson.objectid import ObjectId

from apiserver.stores.documents.base import Document, Index, InvalidDocument
from apiserver.stores.documents.dialect.documents import check_name, identity_of, key_of
from apiserver.stores.documents.dialect.paths import Path, index_of, parse
from apiserver.stores.documents.dialect.values import MISSING
from apiserver.stores.documents.mongo.errors import TOO_LARGE, errors

REVISION = "_rev"
UNIQUE = "_unique"
_SUMMARY_DEPTH = 3
_LARGEST = 16 * 2**20
_MAY_BE_TOO_LARGE = 2 * 2**20
"""Bytes of JSON, which may be several times as many of BSON."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of one collection: its indexed fields, its unique ones together, and those that grow large."""

    collection: str
    keys: tuple[Path, ...]
    unique: tuple[tuple[Path, ...], ...]
    large: tuple[str, ...]

    @classmethod
    def of(cls, collection: str, indexes: Iterable[Index], large: Sequence[str] = ()) -> Layout:
        """The layout that the declared indexes and large fields give a collection."""
        check_name(collection)
        own = [index for index in indexes if index.collection == collection]
        keys = dict.fromkeys(parse(field) for index in own for field in index.fields)
        unique = tuple(tuple(map(parse, index.fields)) for index in own if index.unique)
        return cls(collection, tuple(keys), unique, tuple(large))

    def encode(self, document: Document, revision: ObjectId) -> dict[str, Any]:
        """A document to insert; InvalidDocument when it cannot be kept."""
        identity = identity_of(self.collection, document)
        self._check_keys(document, document.keys())
        fields = {_stored(name): value for name, value in plain(document).items()}
        unique = self._unique(document)
        return {"_id": identity, REVISION: revision, **fields, **({UNIQUE: unique} if unique else {})}

    def changes(self, document: Document, paths: Sequence[Path], revision: ObjectId) -> dict[str, Any]:
        """The update that writes what changed in a document at the paths; InvalidDocument when it cannot be kept."""
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
        """The top-level fields that the unique indexes are about."""
        return {path[0] for paths in self.unique for path in paths}

    def _places(self, paths: Sequence[Path]) -> list[Path]:
        """What to write for changes at the paths: top-level fields as a whole, of large ones only the parts."""
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
    """The fields of a declared index as MongoDB's index over them, which it goes through in either direction.

    `_id` is the last, as it is in every sort: MongoDB sorts all that match unless an index has the whole order.
    """
    return {**{name_of(parse(field)): 1 for field in index.fields}, "_id": 1}


def unique_key(index: Index) -> dict[str, int]:
    """The field of the index that makes a declared index unique, beside that over its fields."""
    return {f"{UNIQUE}.{','.join(_member(parse(field)) for field in index.fields)}": 1}


def decode(stored: Mapping[str, Any]) -> Document:
    """The document, or what was read of it, as it was given."""
    fields = {_given(name): value for name, value in stored.items() if name[:1] != "_" or name[:2] == "__"}
    return {"id": stored["_id"], **fields}


def name_of(path: Path) -> str:
    """A path as MongoDB writes it."""
    return ".".join((_stored(path[0]), *path[1:]))


def before_index(path: Path) -> Path:
    """The path up to where it may name an item of a list."""
    end = next((place for place, name in enumerate(path) if place and index_of(name) is not None), len(path))
    return path[:end]


def outermost(paths: Iterable[Path]) -> list[Path]:
    """The paths without those that lie inside another."""
    found = set(paths)
    return sorted(path for path in found if not any(path[:length] in found for length in range(1, len(path))))


def plain(value: dict[str, Any]) -> dict[str, Any]:
    """A copy that holds but what JSON has, null for NaN and infinities; InvalidDocument when that cannot be kept."""
    try:
        text = orjson.dumps(value)
    except TypeError as error:
        raise InvalidDocument(f"not a JSON value: {error}") from None
    copy: dict[str, Any] = orjson.loads(text)
    if b'"$ref"' in text and _holds_reference(copy):
        raise InvalidDocument("an object with the fields '$ref' and '$id' is more to MongoDB than an object")
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


def _given(name: str) -> str:
    return name[1:] if name[:2] == "__" else name


def _member(path: Path) -> str:
    return "/".join(path)

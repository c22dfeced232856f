"""The rules for names of collections and for documents, for every engine."""

from __future__ import annotations

import re
from math import isfinite
from typing import Any

from apiserver.stores.documents.base import DocumentStoreError, InvalidDocument
from apiserver.stores.documents.dialect.paths import Path
from apiserver.stores.documents.query import Document

_NAME = re.compile(r"[a-z][a-z_]{0,63}")


def is_name(collection: str) -> bool:
    """Whether a collection may have this name."""
    return _NAME.fullmatch(collection) is not None


def check_name(collection: str) -> None:
    """Raise DocumentStoreError unless a collection may have this name."""
    if not is_name(collection):
        raise DocumentStoreError(f"{collection!r:.80} cannot be the name of a collection")


def identity_of(collection: str, document: Document) -> str:
    """The document's id; InvalidDocument if it has none."""
    identity = document.get("id")
    if not isinstance(identity, str) or not identity:
        raise InvalidDocument(f"{collection}: a document needs a text as its id, and it must not be empty")
    return identity


def key_of(collection: str, document: Document, path: Path) -> Any:
    """The value of an indexed field; None if it is missing, NaN or infinite. InvalidDocument unless it is single."""
    value: Any = document
    for name in path:
        if not isinstance(value, list):
            value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, dict | list):
        raise InvalidDocument(f"{collection}: field '{'.'.join(path)}' must be a single value")
    return None if isinstance(value, float) and not isfinite(value) else value

"""The metadata of models and queues: `{key: {key, type, value}}`, stored under escaped keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from apiserver.services.names import escape
from apiserver.stores.documents.base import Document

#: Items as requests give them: a list, or by their keys.
Items = Iterable[Document] | Mapping[str, Document]


def metadata_of(items: Items) -> dict[str, Document]:
    """Items of a request as they are stored; of two with the same key, the later one."""
    keyed = items.items() if isinstance(items, Mapping) else ((item["key"], item) for item in items)
    return {escape(key): {"key": key, "type": item.get("type"), "value": item.get("value")} for key, item in keyed}


def metadata_update(items: Items, replace_all: bool) -> dict[str, Any]:
    """The `$set` that adds or updates the items, or has them alone."""
    stored = metadata_of(items)
    return {"metadata": stored} if replace_all else {f"metadata.{key}": item for key, item in stored.items()}


def metadata_removal(keys: Iterable[str]) -> dict[str, Any]:
    """The `$unset` that drops the items with these keys."""
    return {f"metadata.{escape(key)}": 1 for key in keys}

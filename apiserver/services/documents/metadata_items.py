"""Metadata items of models and queues, stored as `{escaped key: {key, type, value}}`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from apiserver.services.documents.keys import escape
from apiserver.stores.documents.query import Document, Update

#: Items as requests have them: a list, or an object by key.
Items = Iterable[Document] | Mapping[str, Document]


def metadata_of(items: Items) -> dict[str, Document]:
    """The stored form of a request's items. If two items have the same key, the later one counts."""
    keyed = items.items() if isinstance(items, Mapping) else ((item["key"], item) for item in items)
    return {escape(key): {"key": key, "type": item.get("type"), "value": item.get("value")} for key, item in keyed}


def metadata_update(items: Items, replace_all: bool) -> Update:
    """The update that adds or changes the items; with `replace_all`, all other items are dropped."""
    stored = metadata_of(items)
    given = {"metadata": stored} if replace_all else {f"metadata.{key}": item for key, item in stored.items()}
    return Update(set=given)


def metadata_removal(keys: Iterable[str]) -> Update:
    """The update that drops the items with these keys; without keys, one that changes nothing."""
    return Update(unset=[f"metadata.{escape(key)}" for key in keys])

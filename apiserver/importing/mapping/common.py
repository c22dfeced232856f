"""What all kinds have in common: ids, companies, names, and fields that nobody needs any more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from apiserver.importing import names
from apiserver.importing.urls import Replacements
from apiserver.services.names import escape
from apiserver.stores.documents.base import Document

#: Of ClearML's own use, or obsolete there.
_DROPPED = ("_id", "company_origin", "unique_metrics", "duration")
#: Lists that ClearML's server answers sorted, however they lie there.
_SORTED = ("tags", "system_tags")


@dataclass(frozen=True, slots=True)
class Context:
    """What mapping depends on beside the document."""

    home: str
    """The company that gets what is public and nobody's."""
    urls: Replacements = field(default_factory=Replacements)
    escaped: bool = True
    """Whether names that users gave are escaped, as in the database, or plain, as the API answers them."""

    def name(self, key: str) -> str:
        """The user's name of an entry that is stored under `key`."""
        return names.unescape(key) if self.escaped else key


def base(document: Mapping[str, Any], context: Context) -> Document:
    """The fields that are taken as they are; what is null is left out.

    What a company has made public has no company there, but an origin; here it stays with the company that has it.
    """
    company = document.get("company") or document.get("company_origin") or context.home
    kept = {name: value for name, value in document.items() if name not in _DROPPED and value is not None}
    tags = {name: sorted(kept[name], key=str) for name in _SORTED if name in kept}
    mark = {} if document.get("company") else {"public": True}
    return {**kept, **tags, "id": identity(document), "company": company, **mark}


def identity(document: Mapping[str, Any]) -> str:
    """The id of a document; KeyError when it has none."""
    found = document["_id"] if "_id" in document else document["id"]
    return str(found)


def keyed(
    entries: Mapping[str, Any] | None, name: Callable[[str], str], item: Callable[[str, Any], Any]
) -> dict[str, Any]:
    """Entries under keys as ours are, each made by `item` of its name and what it was."""
    named = {name(key): value for key, value in (entries or {}).items()}
    return {escape(own): item(own, value) for own, value in named.items()}


def metadata(items: Any, context: Context) -> Document:
    """Metadata of a model or queue: by key, or (in old databases) a list."""
    if isinstance(items, list):
        items = {item["key"]: item for item in items}
        return keyed(items, lambda key: key, _metadata_item)
    return keyed(items, context.name, _metadata_item)


def _metadata_item(key: str, item: Mapping[str, Any]) -> Document:
    return {"key": key, "type": item.get("type"), "value": item.get("value")}

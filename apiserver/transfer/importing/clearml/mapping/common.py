"""The mapping that all kinds of documents share: ids, companies, names, and dropped fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from apiserver.common.times import utc_now
from apiserver.services.documents.keys import escape
from apiserver.stores.documents.query import Document
from apiserver.transfer.importing.clearml import names
from apiserver.transfer.importing.clearml.urls import Replacements

#: Fields that are internal to ClearML's server, or obsolete there.
_DROPPED = ("_id", "company_origin", "unique_metrics", "duration")
#: Lists that ClearML's server sorts when it answers.
_SORTED = ("tags", "system_tags")


@dataclass(frozen=True, slots=True)
class Context:
    """The facts on which a mapping depends besides the document."""

    home: str
    """The company that gets public documents of no company."""
    urls: Replacements = field(default_factory=Replacements)
    escaped: bool = True
    """Whether keys hold users' names in escaped form, as in the database, or as they are, as in the API's answers."""

    now: str = field(default_factory=utc_now)
    """When the import began."""

    def name(self, key: str) -> str:
        """The user's name for an entry that is stored under `key`."""
        return names.unescape(key) if self.escaped else key


def base(document: Mapping[str, Any], context: Context) -> Document:
    """The document without dropped fields and nulls, and with its id and company.

    A document that a company has made public has no `company` there, only a `company_origin`. Here it stays with that
    company, and is marked as public.
    """
    company = document.get("company") or document.get("company_origin") or context.home
    kept = {name: value for name, value in document.items() if name not in _DROPPED and value is not None}
    tags = {name: sorted(kept[name], key=str) for name in _SORTED if name in kept}
    mark = {} if document.get("company") else {"public": True}
    return {**kept, **tags, "id": identity(document), "company": company, **mark}


def identity(document: Mapping[str, Any]) -> str:
    """The id of a document. Raises KeyError."""
    found = document["_id"] if "_id" in document else document["id"]
    return str(found)


def keyed(
    entries: Mapping[str, Any] | None, name: Callable[[str], str], item: Callable[[str, Any], Any]
) -> dict[str, Any]:
    """The entries under keys of ours: `name` gives the name for an old key, `item` the entry for a name and value."""
    named = {name(key): value for key, value in (entries or {}).items()}
    return {escape(own): item(own, value) for own, value in named.items()}


def metadata(items: Any, context: Context) -> Document:
    """The metadata of a model or queue, which are an object, or a list in old databases."""
    if isinstance(items, list):
        items = {item["key"]: item for item in items}
        return keyed(items, lambda key: key, _metadata_item)
    return keyed(items, context.name, _metadata_item)


def _metadata_item(key: str, item: Mapping[str, Any]) -> Document:
    return {"key": key, "type": item.get("type"), "value": item.get("value")}

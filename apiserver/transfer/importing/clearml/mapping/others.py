"""Converts projects, models, queues, and the settings of storage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.services.documents.keys import escape_keys
from apiserver.services.models.model_documents import empty_model
from apiserver.stores.documents.query import Document
from apiserver.transfer.importing.clearml.mapping.common import Context, base, metadata


def project(document: Mapping[str, Any], context: Context) -> Document:
    """The project as it is stored here."""
    plain: Document = escape_keys(base(document, context))
    for name in ("default_output_destination", "logo_url"):
        if name in plain:
            plain[name] = context.urls.in_text(plain[name])
    made: Document = {"description": "", "tags": [], "system_tags": [], "path": [], **plain}
    return {
        **made,
        "basename": made["name"].rpartition("/")[2],
        "last_update": made.get("last_update", made["created"]),
    }


def model(document: Mapping[str, Any], context: Context) -> Document:
    """The model as it is stored here."""
    found = base(document, context)
    items = found.pop("metadata", None)
    made: Document = {**empty_model(), **escape_keys(found), "metadata": metadata(items, context)}
    for time in ("last_update", "last_change"):
        made.setdefault(time, made["created"])
    if "uri" in made:
        made["uri"] = context.urls.in_text(made["uri"])
    return made


def queue(document: Mapping[str, Any], context: Context) -> Document:
    """The queue as it is stored here, with its entries in the same order."""
    found = base(document, context)
    items = found.pop("metadata", None)
    entries = [{"task": entry["task"], "added": entry["added"]} for entry in found.pop("entries", [])]
    made: Document = {"display_name": found["name"], "user": None, "tags": [], "system_tags": [], **escape_keys(found)}
    return {
        **made,
        "last_update": made.get("last_update", made["created"]),
        "entries": entries,
        "metadata": metadata(items, context),
    }


def storage_settings(document: Mapping[str, Any], context: Context) -> Document:
    """A company's credentials for object stores: one document, whose id is the company's."""
    found: Document = escape_keys(base(document, context))
    names = ("company", "aws", "google", "azure", "last_update")
    return {"id": found["company"]} | {name: found[name] for name in names if name in found}

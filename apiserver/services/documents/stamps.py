"""The fields that say when a task, a model or another document was made or changed, and by whom."""

from __future__ import annotations

from apiserver.common.times import utc_now
from apiserver.services.backend import Call
from apiserver.stores.documents.query import Document


def made_now(call: Call) -> Document:
    """The fields of a document that the caller makes."""
    changed = changed_now(call)
    return {"user": call.identity.user, "created": changed["last_change"], **changed}


def changed_now(call: Call) -> Document:
    """The fields of a document that the caller changes."""
    now = utc_now()
    return {"last_update": now, "last_change": now, "last_changed_by": call.identity.user}

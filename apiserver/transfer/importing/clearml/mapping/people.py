"""Converts companies, users and their access keys.

ClearML's server keeps two documents for each user: a profile with names and preferences, and an account with the role
and access keys. Its own services are users without a profile.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from apiserver.common.times import utc_now
from apiserver.services.access.credentials import Credential, stored_credential
from apiserver.stores.documents.query import Document
from apiserver.transfer.importing.clearml.mapping.common import identity

_ADMINS = ("root", "admin")
#: Roles whose keys are not imported: roles of ClearML's own services, and of guests, who may only read there.
_WITHOUT_KEYS = ("system", "guest")
#: Keys that every ClearML server ships with. Their secrets are in its public sources, so anybody could log in.
_PUBLISHED = {
    "62T8CP7HGBC6647XF9314C2VY67RJO",
    "GSQWPEKSKNKF354LC9V6BHXKTYFD5I",
    "EYVQ385RW7Y2QQUH88CZ7DWIQ1WUHP",
    "EGRTCO8JMSIGI6S39GTP43NFWXDQOW",
}


@dataclass(frozen=True, slots=True)
class Person:
    """A user and their access keys as they are stored here; `left` has keys that are not imported, with the reason."""

    user: Document
    credentials: list[Document] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)


def company(document: Mapping[str, Any], server_uid: str | None) -> Document:
    """The company as it is stored here; `server_uid` is the id of the ClearML server."""
    id = identity(document)
    return {
        "id": id,
        "company": id,
        "name": document.get("name") or id,
        "created": document.get("created") or utc_now(),
        "server_uid": server_uid or uuid4().hex,
    }


def person(profile: Mapping[str, Any] | None, account: Mapping[str, Any] | None) -> Person | None:
    """The user with this profile and account, of which one may be missing; None for a service without usable keys."""
    fields: dict[str, Any] = {**(account or {}), **(profile or {})}
    role = str((account or {}).get("role", "user"))
    user: Document = {
        "id": identity(fields),
        "name": fields.get("name") or identity(fields),
        "given_name": fields.get("given_name") or "",
        "family_name": fields.get("family_name") or "",
        "email": fields.get("email") or "",
        "role": "admin" if role in _ADMINS and not _is_service(account) else "user",
        "company": fields["company"],
        "created": fields.get("created") or utc_now(),
        "preferences": _preferences(fields.get("preferences")),
    }
    if fields.get("avatar"):
        user["avatar"] = fields["avatar"]
    taken, left = _credentials(user, role, (account or {}).get("credentials") or ())
    return None if profile is None and not taken else Person(user, taken, left)


def _is_service(account: Mapping[str, Any] | None) -> bool:
    if not account or not account.get("autocreated"):
        return False
    return identity(account) == f"__{account.get('name')}__"


def _credentials(user: Document, role: str, credentials: Any) -> tuple[list[Document], dict[str, str]]:
    taken, left = [], {}
    for credential in credentials:
        key = credential["key"]
        if role in _WITHOUT_KEYS:
            left[key] = f"its owner has the role '{role}'"
        elif key in _PUBLISHED:
            left[key] = "every ClearML server has it, and its secret is public"
        else:
            stored = stored_credential(user, Credential(key, credential["secret"]), credential.get("label"))
            used = {name: credential.get(name) for name in ("last_used", "last_used_from")}
            taken.append(
                {**stored, **used, "id": f"clearml-{key}", "created": credential.get("last_used") or user["created"]}
            )
    return taken, left


def _preferences(stored: Any) -> str:
    if isinstance(stored, str):
        stored = json.loads(stored or "{}")
    return json.dumps(stored or {}, separators=(",", ":"))

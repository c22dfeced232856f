"""Users and their access keys, stored as documents.

A secret is shown once, when it is made; only its SHA-256 is stored. That is safe without salt, because a secret is 256
random bits. Functions that change a key or a user also empty the cache of `identities.py`.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from uuid import uuid4

from apiserver.common.times import utc_now
from apiserver.rpc.call import FULL, Grant
from apiserver.rpc.versions import SERVER_VERSION
from apiserver.services.access.identities import PASSWORDS, PROVIDER_LINKS, SESSIONS, digest, forget
from apiserver.services.access.roles import ASSIGNABLE, USER
from apiserver.services.access.scopes import fields_of, grant_of
from apiserver.stores.documents.base import DocumentStore, DuplicateDocument
from apiserver.stores.documents.query import AllOf, AnyOf, Document, Unequal, Update


@dataclass(frozen=True, slots=True)
class Credential:
    """A new access key with its secret in plain text."""

    key: str
    secret: str = field(repr=False)


class UnknownUser(Exception):
    """The error if neither a user nor an access key has a name."""


async def add_user(
    documents: DocumentStore, company: str, name: str, role: str = USER, *, service: bool = False, **fields: str | None
) -> Document:
    """Add a user without an access key. `fields`: id, given_name, family_name, email, avatar.

    A `service` account is for programs: nobody signs in as one with a password, a link or a name alone. ValueError when
    there is no such role; DuplicateDocument when the id or the name is taken.
    """
    if role not in ASSIGNABLE:
        raise ValueError(f"role must be one of {', '.join(ASSIGNABLE)}")
    user = {**new_user(company, name, role), **{key: value for key, value in fields.items() if value is not None}}
    if service:
        user["service"] = True
    await documents.insert("users", [user])
    return user


async def create_user(
    documents: DocumentStore, company: str, name: str, role: str = USER, *, service: bool = False, grant: Grant = FULL
) -> tuple[Document, Credential]:
    """`add_user`, with one access key."""
    user = await add_user(documents, company, name, role, service=service)
    return user, await create_credential(documents, user, grant=grant)


async def list_users(documents: DocumentStore, company: str) -> list[Document]:
    """The company's users by name, each with their access keys as `credentials`, without the hashes of secrets."""
    users = await documents.find("users", {"company": company}, sort=[("name", 1)])
    keys = await documents.find(
        "credentials",
        {"company": company},
        projection=("user", "key", "label", "created", "last_used", "scopes", "project", "expires"),
        sort=[("created", 1)],
    )
    return [{**user, "credentials": [key for key in keys if key["user"] == user["id"]]} for user in users]


async def delete_user(documents: DocumentStore, company: str, user: str) -> int:
    """Delete a user with their access keys, password, logins and own views, so their tokens end; returns 0 or 1."""
    deleted = await documents.delete("users", {"company": company, "id": user})
    if deleted:
        for kept in ("credentials", PASSWORDS, PROVIDER_LINKS, SESSIONS):
            await documents.delete(kept, {"company": company, "user": user})
        await documents.delete("views", {"company": company, "user": user, "shared": False})
    forget(documents)
    return deleted


async def create_credential(
    documents: DocumentStore, user: Document, label: str | None = None, grant: Grant = FULL
) -> Credential:
    """One more access key for the user (a document with id and company)."""
    credential = new_pair()
    await documents.insert("credentials", [stored_credential(user, credential, label, grant)])
    return credential


async def rotate(documents: DocumentStore, company: str, user_or_key: str) -> Credential:
    """Replace one access key, or all keys of a user (by id or name), by a new one. UnknownUser if there is neither.

    A key that replaces one key allows what that allowed. One that replaces all keys of a user allows everything.
    """
    old = await documents.find_one("credentials", {"company": company, "key": user_or_key})
    owner = {"id": old["user"]} if old else AnyOf([{"id": user_or_key}, {"name": user_or_key}])
    user = await documents.find_one("users", AllOf([{"company": company}, owner]))
    if user is None:
        raise UnknownUser(user_or_key)
    label, grant = (old["label"], grant_of(old)) if old else (None, FULL)
    replacement = await create_credential(documents, user, label, grant)
    replaced = {"key": user_or_key} if old else {"user": user["id"], "key": Unequal(replacement.key)}
    await documents.delete("credentials", {"company": company, **replaced})
    forget(documents)
    return replacement


async def revoke(documents: DocumentStore, company: str, key: str, user: str | None = None) -> int:
    """Delete an access key (only if it is of `user`, if given), with effect at once; returns 0 or 1."""
    owner = {"user": user} if user is not None else {}
    revoked = await documents.delete("credentials", {"company": company, "key": key, **owner})
    forget(documents)
    return revoked


async def update_user(documents: DocumentStore, company: str, user: str, fields: Document) -> int:
    """Set fields of a user; returns 0 if there is no such user, else 1. DuplicateDocument if the name is taken."""
    owner = {"company": company, "id": user}
    if not fields:
        return await documents.count("users", owner)
    updated = await documents.update("users", owner, Update(set=fields))
    forget(documents)
    return updated


def new_user(company: str, name: str, role: str) -> Document:
    """The document of a new user."""
    return {
        "id": uuid4().hex,
        "name": name,
        "given_name": "",
        "family_name": "",
        "email": "",
        "avatar": "",
        "role": role,
        "company": company,
        "created": utc_now(),
        "created_in_version": SERVER_VERSION,
        "preferences": "{}",
    }


def new_pair() -> Credential:
    """A new random access key and secret."""
    return Credential(key=secrets.token_hex(10).upper(), secret=secrets.token_urlsafe(32))


def stored_credential(user: Document, credential: Credential, label: str | None, grant: Grant = FULL) -> Document:
    """The document of a new access key, with the digest of its secret."""
    return {
        "id": uuid4().hex,
        "key": credential.key,
        "secret_hash": digest(credential.secret),
        "user": user["id"],
        "company": user["company"],
        "label": label,
        "created": utc_now(),
        "last_used": None,
        "last_used_from": None,
        **fields_of(grant),
    }


async def insert_if_new(documents: DocumentStore, collection: str, document: Document) -> bool:
    """Insert the document; False if one with the same id or unique field exists."""
    try:
        await documents.insert(collection, [document])
    except DuplicateDocument:
        return False
    return True

"""Users and their access keys: who may call, kept as documents, and the secrets only as digests.

A secret is 256 random bits, so a plain SHA-256 of it cannot be searched; it is shown once, when made. Every change of
a key or of a user goes through here, which is what keeps the cache of `lookup` true.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from uuid import uuid4
from weakref import WeakKeyDictionary

from apiserver.rpc.call import Identity
from apiserver.services.queue_documents import new_queue
from apiserver.settings import Settings
from apiserver.stores.documents.base import Document, DocumentStore, DuplicateDocument
from apiserver.times import utc_now

Lookup = Callable[[str, str], Awaitable[Identity | None]]
IsLive = Callable[[str], Awaitable[bool]]

ADMIN_NAME = "admin"
ROLES = ("admin", "user")
CACHED_KEYS = 1024
#: Another process may revoke a key: this much later it is refused here too.
CACHED_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Credential:
    """An access key and its secret, in plain text: the only moment the secret is known."""

    key: str
    secret: str = field(repr=False)


class UnknownUser(Exception):
    """Neither a user nor an access key has that name."""


# --- looked up ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Cache:
    """Identities by key, with the digest that proves them; `generation` tells a reader that it came too late."""

    entries: OrderedDict[str, tuple[str, Identity, float]] = field(default_factory=OrderedDict)
    generation: int = 0

    def get(self, key: str) -> tuple[str, Identity] | None:
        digest, identity, read = self.entries.get(key, ("", None, 0.0))
        return None if identity is None or time.monotonic() - read > CACHED_SECONDS else (digest, identity)

    def put(self, key: str, digest: str, identity: Identity) -> None:
        self.entries[key] = (digest, identity, time.monotonic())
        if len(self.entries) > CACHED_KEYS:
            self.entries.popitem(last=False)


_caches: WeakKeyDictionary[DocumentStore, _Cache] = WeakKeyDictionary()


def forget(documents: DocumentStore) -> None:
    """Drop what `lookup` remembers of this store."""
    cache = _caches.setdefault(documents, _Cache())
    cache.entries.clear()
    cache.generation += 1


def lookup(documents: DocumentStore) -> Lookup:
    """A coroutine function that tells whose (key, secret) is, or None when the pair is not valid."""

    async def identify(key: str, secret: str) -> Identity | None:
        digest = _digest(secret)
        known = await _known(documents, key)
        return known[1] if known is not None and hmac.compare_digest(known[0], digest) else None

    return identify


def is_live(documents: DocumentStore) -> IsLive:
    """A coroutine function that tells whether an access key is still in use: tokens end with the key they came from."""

    async def live(key: str) -> bool:
        return await _known(documents, key) is not None

    return live


async def _known(documents: DocumentStore, key: str) -> tuple[str, Identity] | None:
    cache = _caches.setdefault(documents, _Cache())
    known = cache.get(key)
    if known is None:
        generation = cache.generation
        known = await _read(documents, key)
        if known is not None and generation == cache.generation:
            cache.put(key, *known)
    return known


async def _read(documents: DocumentStore, key: str) -> tuple[str, Identity] | None:
    credential = await documents.find_one("credentials", {"key": key})
    user = credential and await documents.find_one("users", {"id": credential["user"]})
    if not credential or not user:
        return None
    company = await documents.find_one("companies", {"id": user["company"]})
    return credential["secret_hash"], Identity(
        user=user["id"],
        company=user["company"],
        role=user["role"],
        user_name=user["name"],
        company_name=company["name"] if company else "",
        key=key,
    )


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


# --- made at the start -------------------------------------------------------------------------------


async def ensure_defaults(documents: DocumentStore, settings: Settings) -> None:
    """Make the default company and its default queue unless they are there: then nothing is written."""
    if await documents.find_one("companies", {"id": settings.company}) is None:
        company = {"id": settings.company, "company": settings.company, "name": "default", "created": utc_now()}
        await _insert_if_new(documents, "companies", {**company, "server_uid": uuid4().hex})
    if await documents.find_one("queues", {"company": settings.company, "system_tags": "default"}) is None:
        queue = new_queue("default", user=None, company=settings.company, system_tags=["default"])
        await _insert_if_new(documents, "queues", queue)


async def ensure_admin(documents: DocumentStore, settings: Settings) -> Credential | None:
    """Make the admin and a key of theirs unless they are there; `admin_key` and `admin_secret` decide that key.

    Returns the pair when it was made or changed by this call. ValueError when only one of the two settings is given.
    """
    if bool(settings.admin_key) != bool(settings.admin_secret):
        raise ValueError("admin_key and admin_secret must be set together")
    user = await _ensure_admin_user(documents, settings.company)
    if settings.admin_key:
        return await _fix(documents, user, Credential(settings.admin_key, settings.admin_secret))
    if await documents.count("credentials", {"user": user["id"]}):
        return None
    credential = _new_pair()
    first = {**stored_credential(user, credential, "made at first start"), "id": f"first-{user['id']}"}
    # Of servers that start at once, one makes it.
    return credential if await _insert_if_new(documents, "credentials", first) else None


async def _ensure_admin_user(documents: DocumentStore, company: str) -> Document:
    """The company's first admin, by whatever name; made when there is none."""
    admin = await documents.find_one("users", {"company": company, "role": "admin"}, sort=[("created", 1)])
    if admin is not None:
        return admin
    await _insert_if_new(documents, "users", _new_user(company, ADMIN_NAME, "admin"))
    user = await documents.find_one("users", {"company": company, "name": ADMIN_NAME})
    assert user is not None
    return user


async def _fix(documents: DocumentStore, admin: Document, wanted: Credential) -> Credential | None:
    """Make `wanted` valid for the admin, and the pair that the settings gave before invalid."""
    there = {"key": wanted.key, "secret_hash": _digest(wanted.secret), "user": admin["id"]}
    await documents.delete("credentials", {"fixed": True, "company": admin["company"], "key": {"$ne": wanted.key}})
    if await documents.find_one("credentials", there) is not None:
        return None
    fresh = {**stored_credential(admin, wanted, "set by the settings"), "fixed": True}
    changes = {name: fresh[name] for name in ("secret_hash", "user", "company", "label", "fixed")}
    with contextlib.suppress(DuplicateDocument):  # another server that starts makes it, too
        await documents.update("credentials", {"key": wanted.key}, {"$set": changes}, upsert=fresh)
    forget(documents)
    return wanted


async def _insert_if_new(documents: DocumentStore, collection: str, document: Document) -> bool:
    """Insert the document; False when one like it is there."""
    try:
        await documents.insert(collection, [document])
    except DuplicateDocument:
        return False
    return True


# --- users and keys ----------------------------------------------------------------------------------


async def add_user(
    documents: DocumentStore, company: str, name: str, role: str = "user", **fields: str | None
) -> Document:
    """Add a user without an access key. `fields`: given_name, family_name, email.

    ValueError when there is no such role; DuplicateDocument when the name is taken.
    """
    if role not in ROLES:
        raise ValueError(f"role must be one of {', '.join(ROLES)}")
    user = {**_new_user(company, name, role), **{key: value for key, value in fields.items() if value is not None}}
    await documents.insert("users", [user])
    return user


async def create_user(
    documents: DocumentStore, company: str, name: str, role: str = "user", **fields: str | None
) -> tuple[Document, Credential]:
    """`add_user`, with one access key."""
    user = await add_user(documents, company, name, role, **fields)
    return user, await create_credential(documents, user)


async def list_users(documents: DocumentStore, company: str) -> list[Document]:
    """The company's users by name, each with `credentials`: [{key, label, created, last_used}]."""
    users = await documents.find("users", {"company": company}, sort=[("name", 1)])
    keys = await documents.find(
        "credentials",
        {"company": company},
        projection=("user", "key", "label", "created", "last_used"),
        sort=[("created", 1)],
    )
    return [{**user, "credentials": [key for key in keys if key["user"] == user["id"]]} for user in users]


async def create_credential(documents: DocumentStore, user: Document, label: str | None = None) -> Credential:
    """One more access key for the user (a document with id and company)."""
    credential = _new_pair()
    await documents.insert("credentials", [stored_credential(user, credential, label)])
    return credential


async def rotate(documents: DocumentStore, company: str, user_or_key: str) -> Credential:
    """Replace one access key, or all of a user's (by id or name), by a new one. UnknownUser when there is neither."""
    old = await documents.find_one("credentials", {"company": company, "key": user_or_key})
    owner = {"id": old["user"]} if old else {"$or": [{"id": user_or_key}, {"name": user_or_key}]}
    user = await documents.find_one("users", {"$and": [{"company": company}, owner]})
    if user is None:
        raise UnknownUser(user_or_key)
    replacement = await create_credential(documents, user, label=old["label"] if old else None)
    replaced = {"key": user_or_key} if old else {"user": user["id"], "key": {"$ne": replacement.key}}
    await documents.delete("credentials", {"company": company, **replaced})
    forget(documents)
    return replacement


async def revoke(documents: DocumentStore, company: str, key: str, user: str | None = None) -> int:
    """Take an access key (of `user` only, if given) out of use at once; returns how many there were."""
    owner = {"user": user} if user is not None else {}
    revoked = await documents.delete("credentials", {"company": company, "key": key, **owner})
    forget(documents)
    return revoked


async def mark_used(documents: DocumentStore, key: str, worker: str) -> None:
    """Note that a key was used to log in, now and from that worker."""
    await documents.update("credentials", {"key": key}, {"$set": {"last_used": utc_now(), "last_used_from": worker}})


async def update_user(documents: DocumentStore, company: str, user: str, fields: Document) -> int:
    """Set fields of a user; returns how many matched. DuplicateDocument: the name is taken."""
    owner = {"company": company, "id": user}
    if not fields:
        return await documents.count("users", owner)
    updated = await documents.update("users", owner, {"$set": fields})
    forget(documents)
    return updated


def _new_user(company: str, name: str, role: str) -> Document:
    return {
        "id": uuid4().hex,
        "name": name,
        "given_name": "",
        "family_name": "",
        "email": "",
        "role": role,
        "company": company,
        "created": utc_now(),
        "preferences": "{}",
    }


def _new_pair() -> Credential:
    return Credential(key=secrets.token_hex(10).upper(), secret=secrets.token_urlsafe(32))


def stored_credential(user: Document, credential: Credential, label: str | None) -> Document:
    """A new access key of the user as it is stored, its secret as a digest."""
    return {
        "id": uuid4().hex,
        "key": credential.key,
        "secret_hash": _digest(credential.secret),
        "user": user["id"],
        "company": user["company"],
        "label": label,
        "created": utc_now(),
        "last_used": None,
        "last_used_from": None,
    }

"""Who calls: the users behind access keys and tokens, remembered for a moment.

Each change of a key, a user or a session goes through a module that then calls `forget`, which keeps this true.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

from apiserver.rpc.auth import Become, Current, Lookup
from apiserver.rpc.call import Identity
from apiserver.services.access.attempts import Attempts
from apiserver.services.access.roles import may_become
from apiserver.stores.documents.base import DocumentStore, DocumentStoreBusy
from apiserver.times import from_now, utc_now

#: Logins that were ended, by session id, until their tokens would have expired.
ENDED_SESSIONS = "ended_sessions"
#: Logins that go on, by session id: who, when, from where.
SESSIONS = "sessions"
#: How exactly it is noted when one was used.
NOTED_SECONDS = 3600
#: Hashes of passwords by user, each with a key that stands for it in tokens, and that another password does not have:
#: `password-<user>-<anything>`.
PASSWORDS = "passwords"
PASSWORD_KEY = "password-"
REMEMBERED = 4096
#: Another process may revoke a key: this much later it is refused here too.
CACHED_SECONDS = 2.0


def lookup(documents: DocumentStore) -> Lookup:
    """A coroutine function that tells whose (key, secret) is, or None when the pair is not valid.

    429 for wrong secrets after too many of them; for the right one only if somebody chose it, in the settings. Secrets
    that are made here cannot be guessed, so that who tries keeps nobody out. A key that does not exist is not counted:
    there is nothing to guess, and hundreds of processes may still have one that was revoked.
    """

    attempts, memory = Attempts(), _memory_of(documents)

    async def identify(key: str, secret: str, client: str = "") -> Identity | None:
        presented = digest(secret)
        known: _Key | None = await _remembered(memory, key, lambda: _of_key(documents, key))
        if known is None:
            return None
        if not hmac.compare_digest(known.secret_hash, presented):
            attempts.begin(key, client)
            return None
        if known.chosen:
            attempts.let_in(key, client)
        return known.identity

    return identify


def current(documents: DocumentStore) -> Current:
    """A coroutine function that tells who a token's bearer is by now: its role may have changed.

    None when its session was ended, when the access key it came from was revoked, or when its user was deleted.
    """

    memory = _memory_of(documents)

    async def now(claimed: Identity) -> Identity | None:
        token = (claimed.user, claimed.company, claimed.key, claimed.session, claimed.logged_in)
        found: Identity | None = await _remembered(memory, token, lambda: _of_token(documents, claimed))
        return found

    return now


def become(documents: DocumentStore) -> Become:
    """A coroutine function that tells who a caller becomes that acts for a user; None when they may not."""

    memory = _memory_of(documents)

    async def in_the_name_of(caller: Identity, user: str) -> Identity | None:
        other: Identity | None = await _remembered(memory, ("user", user), lambda: of_user(documents, user))
        if other is None or not may_become(caller, other):
            return None
        return replace(other, key=caller.key, session=caller.session, logged_in=caller.logged_in)

    return in_the_name_of


async def of_user(documents: DocumentStore, user: str) -> Identity | None:
    """A user as one who calls; None when there is no such user."""
    found = await documents.find_one("users", {"id": user}, projection=("id", "company", "role", "name"))
    if found is None:
        return None
    company = await documents.find_one("companies", {"id": found["company"]}, projection=("name",))
    return Identity(
        user=found["id"],
        company=found["company"],
        role=found["role"],
        user_name=found["name"],
        company_name=company["name"] if company else "",
    )


@dataclass(frozen=True, slots=True)
class _Key:
    """An access key: the hash of its secret, whose it is, and whether somebody chose that secret."""

    secret_hash: str
    identity: Identity
    chosen: bool


async def _of_key(documents: DocumentStore, key: str) -> _Key | None:
    credential = await documents.find_one("credentials", {"key": key})
    identity = credential and await of_user(documents, credential["user"])
    if not credential or not identity:
        return None
    return _Key(credential["secret_hash"], replace(identity, key=key), chosen=bool(credential.get("fixed")))


async def _of_token(documents: DocumentStore, claimed: Identity) -> Identity | None:
    if claimed.session and await documents.find_one(ENDED_SESSIONS, {"id": claimed.session}):
        return None
    if claimed.key and not await _in_use(documents, claimed.key):
        return None
    identity = await of_user(documents, claimed.user)
    if identity is None or identity.company != claimed.company:
        return None
    if claimed.session:
        await _note_use(documents, claimed.session)
    return replace(identity, key=claimed.key, session=claimed.session, logged_in=claimed.logged_in)


async def _note_use(documents: DocumentStore, session: str) -> None:
    """Note that a session is used, once in a while; whoever only reads is let in while nothing can be written."""
    kept = await documents.find_one(SESSIONS, {"id": session}, projection=("last_used",))
    if kept is not None and kept["last_used"] < from_now(-NOTED_SECONDS):
        with contextlib.suppress(DocumentStoreBusy):
            await documents.update(SESSIONS, {"id": session}, {"$set": {"last_used": utc_now()}})


async def _in_use(documents: DocumentStore, key: str) -> bool:
    """Whether an access key or a password is still good."""
    if key.startswith(PASSWORD_KEY):
        owner = key.removeprefix(PASSWORD_KEY).rpartition("-")[0]
        return await documents.find_one(PASSWORDS, {"id": owner, "key": key}) is not None
    return await _of_key(documents, key) is not None


def digest(secret: str) -> str:
    """What is kept of an access key's secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


# --- remembered --------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Memory:
    """What was found, and when; `generation` tells a reader that it came too late."""

    found: OrderedDict[Any, tuple[Any, float]] = field(default_factory=OrderedDict)
    generation: int = 0


_memories: WeakKeyDictionary[DocumentStore, _Memory] = WeakKeyDictionary()


def _memory_of(documents: DocumentStore) -> _Memory:
    return _memories.setdefault(documents, _Memory())


def forget(documents: DocumentStore) -> None:
    """Drop what is remembered of this store."""
    memory = _memory_of(documents)
    memory.found.clear()
    memory.generation += 1


async def _remembered(memory: _Memory, what: Any, read: Callable[[], Awaitable[Any]]) -> Any:
    """What `read` finds, or found a moment ago; that there is nothing is not remembered."""
    found, since = memory.found.get(what, (None, 0.0))
    if found is not None and time.monotonic() - since <= CACHED_SECONDS:
        return found
    generation = memory.generation
    found = await read()
    if found is not None and generation == memory.generation:
        memory.found[what] = (found, time.monotonic())
        if len(memory.found) > REMEMBERED:
            memory.found.popitem(last=False)
    return found

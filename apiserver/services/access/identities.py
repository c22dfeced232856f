"""Who calls: finds the users of access keys and tokens, and what the keys allow, with a cache.

Every module that changes a key, a user or a session calls `forget`, which empties the cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary, ref

from apiserver.common.errors import Why, expired
from apiserver.common.times import from_now, utc_now
from apiserver.rpc.auth import Become, Current, Lookup
from apiserver.rpc.call import FULL, Grant, Identity
from apiserver.services.access.attempts import Attempts
from apiserver.services.access.key_uses import KeyUses
from apiserver.services.access.roles import LOGIN_PAGE, may_become
from apiserver.services.access.scopes import grant_of
from apiserver.stores.documents.base import DocumentStore, DocumentStoreBusy
from apiserver.stores.documents.query import Update

#: Collection of ended logins by session id. They stay until their tokens would have expired.
ENDED_SESSIONS = "ended_sessions"
#: Collection of active logins by session id: who, when, from where.
SESSIONS = "sessions"
#: Seconds between two updates of a session's `last_used`, at least.
NOTED_SECONDS = 3600
#: Collection of password hashes by user. Each has a `key`, `password-<user>-<random>`, which tokens name; a new
#: password has a new key, so tokens from the old one end.
PASSWORDS = "passwords"
PASSWORD_KEY = "password-"
#: Collection of people at a provider, and as which users they sign in here. Tokens of these sign-ins have a key
#: `provider-<user>-<link>`, and end when the link does, or leads to another user.
PROVIDER_LINKS = "provider_links"
PROVIDER_KEY = "provider-"
#: The beginning of the keys of people whom a trusted proxy names. No session begins with such a key.
PROXY_KEY = "proxy-"
#: Thousands of SDKs report at the same time, each with a token of its own.
MOST_CACHED = 8192
#: How old a value may be. Tokens are found with the help of keys and users that were found before, so if another
#: server revokes a key, this one accepts it for at most twice as long.
CACHED_SECONDS = 1.0
#: The same if the store tells whether others have changed documents: then the cache is emptied, and need not be young.
#: It is not older because `last_used` is noted when a session is read, once in an hour.
CACHED_ALONE_SECONDS = 600.0


def lookup(documents: DocumentStore, uses: KeyUses, attempts: Attempts | None = None) -> Lookup:
    """A coroutine function that returns the user of a (key, secret), or None if the pair is not valid.

    It raises Refusal(WRONG_CREDENTIALS) with the reason if the key has expired. `uses` is told of each valid pair.

    After too many wrong secrets, it raises Refusal(OVERLOADED) for wrong ones. It does so for the right one only if it
    was chosen in the settings: the server's own secrets cannot be guessed, so their owners are not locked out. An
    unknown key is not counted, because there is nothing to guess, and hundreds of processes may still use a key that
    was revoked.

    `attempts` counts wrong secrets.
    """

    attempts, cache = attempts or Attempts(), _cache_of(documents)

    async def identify(key: str, secret: str, client: str = "") -> Identity | None:
        presented = digest(secret)
        access_key: _Key | None = await cache.get(("key", key), lambda: _of_key(documents, key))
        if access_key is None:
            return None
        if not hmac.compare_digest(access_key.secret_hash, presented):
            attempts.begin(key, client)
            return None
        if access_key.chosen:
            attempts.let_in(key, client)
        if access_key.identity.grant.expires <= time.time():
            raise expired(Why.WRONG_CREDENTIALS, "Unauthorized (the access key has expired)")
        uses.note(key, client)
        return access_key.identity

    return identify


def current(documents: DocumentStore, uses: KeyUses) -> Current:
    """A coroutine function that returns a token's user with the role that the user has now, and what its key allows.

    None if the token's session was ended, the access key it came from was revoked or has expired, or the user was
    deleted. `uses` is told of the keys of valid tokens.
    """

    cache = _cache_of(documents)

    async def now(claimed: Identity) -> Identity | None:
        token = (claimed.user, claimed.company, claimed.key, claimed.session, claimed.logged_in, claimed.acted_by)
        identity: Identity | None = await cache.get(token, lambda: _of_token(documents, claimed))
        if identity is None or identity.grant.expires <= time.time():
            return None
        if identity.key is not None and is_access_key(identity.key):
            uses.note(identity.key)
        return identity

    return now


def become(documents: DocumentStore) -> Become:
    """A coroutine function that returns the identity of a caller who acts for another user; None if not allowed.

    The identity says who acts for the user, but for the login page: there, people sign in themselves.
    """

    cache = _cache_of(documents)

    async def in_the_name_of(caller: Identity, user: str) -> Identity | None:
        other: Identity | None = await cache.get(("user", user), lambda: of_user(documents, user))
        if other is None or not may_become(caller, other):
            return None
        return replace(
            other,
            key=caller.key,
            session=caller.session,
            logged_in=caller.logged_in,
            grant=caller.grant,
            acted_by="" if caller.role == LOGIN_PAGE else caller.acted_by or caller.user,
        )

    return in_the_name_of


async def of_user(documents: DocumentStore, id: str) -> Identity | None:
    """The identity of a user; None if there is no such user."""
    document = await documents.find_one("users", {"id": id}, projection=("id", "company", "role", "name", "service"))
    if document is None:
        return None
    company = await documents.find_one("companies", {"id": document["company"]}, projection=("name",))
    return Identity(
        user=document["id"],
        company=document["company"],
        role=document["role"],
        user_name=document["name"],
        company_name=company["name"] if company else "",
        service=bool(document.get("service")),
    )


@dataclass(frozen=True, slots=True)
class _Key:
    """An access key: the hash of its secret, its user, and whether the settings chose the secret."""

    secret_hash: str
    identity: Identity
    chosen: bool


async def _of_key(documents: DocumentStore, key: str) -> _Key | None:
    credential = await documents.find_one("credentials", {"key": key})
    identity = credential and await of_user(documents, credential["user"])
    if not credential or not identity or identity.company != credential["company"]:
        return None
    allowed = replace(identity, key=key, grant=grant_of(credential))
    return _Key(credential["secret_hash"], allowed, chosen=bool(credential.get("fixed")))


async def _of_token(documents: DocumentStore, claimed: Identity) -> Identity | None:
    if claimed.session and await documents.find_one(ENDED_SESSIONS, {"id": claimed.session}):
        return None
    grant = await _grant(documents, claimed.key) if claimed.key else FULL
    if grant is None:
        return None
    identity: Identity | None = await _cache_of(documents).get(
        ("user", claimed.user), lambda: of_user(documents, claimed.user)
    )
    if identity is None or identity.company != claimed.company:
        return None
    if claimed.session:
        await _note_use(documents, claimed.session)
    return replace(
        identity,
        key=claimed.key,
        session=claimed.session,
        logged_in=claimed.logged_in,
        grant=grant,
        acted_by=claimed.acted_by,
    )


async def _note_use(documents: DocumentStore, session: str) -> None:
    """Update when the session was last used, at most once in `NOTED_SECONDS`; skipped while the store cannot write."""
    kept = await documents.find_one(SESSIONS, {"id": session}, projection=("last_used",))
    if kept is not None and kept["last_used"] < from_now(-NOTED_SECONDS):
        with contextlib.suppress(DocumentStoreBusy):
            await documents.update(SESSIONS, {"id": session}, Update(set={"last_used": utc_now()}))


def is_access_key(key: str) -> bool:
    """Whether the key of an identity is an access key, and does not stand for a password or a link."""
    return not key.startswith((PASSWORD_KEY, PROVIDER_KEY, PROXY_KEY))


async def _grant(documents: DocumentStore, key: str) -> Grant | None:
    """The grant of an access key, or of the password or link that `key` stands for; None if it is not valid now."""
    if key.startswith(PASSWORD_KEY):
        owner = key.removeprefix(PASSWORD_KEY).rpartition("-")[0]
        return FULL if await documents.find_one(PASSWORDS, {"id": owner, "key": key}) is not None else None
    if key.startswith((PROVIDER_KEY, PROXY_KEY)):
        user, _, id = key.partition("-")[2].rpartition("-")
        link = {"id": id, "user": user}
        return FULL if await documents.find_one(PROVIDER_LINKS, link) is not None else None
    known: _Key | None = await _cache_of(documents).get(("key", key), lambda: _of_key(documents, key))
    return None if known is None else known.identity.grant


async def remembered(documents: DocumentStore, key: Hashable, read: Callable[[], Awaitable[Any]]) -> Any:
    """The value of the key: as it was read a short time ago, or by `read` now."""
    return await _cache_of(documents).get(key, read)


def digest(secret: str) -> str:
    """The digest of an access key's secret, which is all that is stored of it."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


# --- the cache ---------------------------------------------------------------------------------------


class _Cache:
    """The values by their keys, and when each was read."""

    def __init__(self, documents: DocumentStore, most: int, clock: Callable[[], float]) -> None:
        self._documents = ref(documents)
        self._most = most
        self._clock = clock
        self._found: OrderedDict[Any, tuple[Any, float]] = OrderedDict()
        self._generation = 0
        """Changes when the cache is emptied."""
        self._by_others: int | None = None
        self._looked = -math.inf

    async def get(self, key: Any, read: Callable[[], Awaitable[Any]]) -> Any:
        """The value of a key: as it was read a short time ago, or by `read` now. None is not cached."""
        now = self._clock()
        if now - self._looked > CACHED_SECONDS:
            self._look(now)
        value, since = self._found.get(key, (None, 0.0))
        if value is not None and now - since <= (CACHED_SECONDS if self._by_others is None else CACHED_ALONE_SECONDS):
            return value
        generation = self._generation
        value = await read()
        if value is not None and generation == self._generation:  # else it may be outdated already
            self._found[key] = (value, self._clock())
            if len(self._found) > self._most:
                self._found.popitem(last=False)
        return value

    def empty(self) -> None:
        """Forget all values, also values that are being read now."""
        self._found.clear()
        self._generation += 1

    def _look(self, now: float) -> None:
        """Empty the cache if others have changed documents."""
        documents = self._documents()
        by_others = documents.changes_by_others if documents is not None else None
        if by_others != self._by_others:
            self.empty()
        self._by_others, self._looked = by_others, now


_caches: WeakKeyDictionary[DocumentStore, _Cache] = WeakKeyDictionary()


def _cache_of(documents: DocumentStore) -> _Cache:
    cache = _caches.get(documents)
    if cache is None:
        cache = bound_cache(documents)
    return cache


def bound_cache(
    documents: DocumentStore,
    *,
    most: int = MOST_CACHED,
    clock: Callable[[], float] = time.monotonic,
) -> _Cache:
    """Begin a cache of this store that holds up to `most` things, before anybody looks something up."""
    cache = _caches[documents] = _Cache(documents, most, clock)
    return cache


def forget(documents: DocumentStore) -> None:
    """Empty the cache of this store."""
    _cache_of(documents).empty()

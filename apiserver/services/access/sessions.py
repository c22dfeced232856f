"""Logins: their tokens, the web UI's cookie, and how they end.

A login is a session, and its tokens name it. A token got with another token has the same session. Logging out ends all
tokens of the session: on this server at once, on others within two seconds. Active sessions are stored as documents, so
that users can see and end them.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import replace
from secrets import token_hex

from apiserver.common.errors import forbidden
from apiserver.common.times import from_now, utc_now
from apiserver.rpc.auth import TOKEN_COOKIE
from apiserver.rpc.call import Identity
from apiserver.rpc.tokens import bad_token
from apiserver.services.access.identities import ENDED_SESSIONS, PROVIDER_KEY, PROXY_KEY, SESSIONS, forget
from apiserver.services.backend import Call
from apiserver.settings.settings import Settings
from apiserver.stores.documents.base import DocumentStore, DuplicateDocument
from apiserver.stores.documents.query import AtLeast, Document, In, Less, Update

SHORTEST_TOKEN = 3600
"""Seconds; SDK clients log in again when less than six minutes are left."""
LONGEST_TOKEN = 365 * 86400
#: How many sessions are ended with one write.
ENDED_AT_ONCE = 500


async def log_in(call: Call, identity: Identity, asked: int | None) -> tuple[str, int]:
    """A token for `identity`, and for how many seconds it is valid: as many as asked for, within limits.

    A caller with a token stays in its session. A session can be renewed for `token_renewal_days` after its login, one
    that began at a provider for `oidc_session_seconds`. Raises Refusal(BAD_TOKEN) later, and Refusal(FORBIDDEN) for
    whom a proxy names: no session begins for them.
    """
    settings, now = call.backend.settings, int(time.time())
    seconds = settings.token_lifetime if asked is None else asked
    seconds = min(max(seconds, SHORTEST_TOKEN), LONGEST_TOKEN)
    if identity.session is None or identity.logged_in is None:
        if identity.key is not None and identity.key.startswith(PROXY_KEY):
            raise forbidden("the proxy says at each request who you are, and no session begins: use an access key")
        identity = replace(identity, session=token_hex(16), logged_in=now)
        if _is_of_provider(identity):
            seconds = min(seconds, settings.oidc_session_seconds)
        await _begin(call, identity, from_now(seconds))
    else:
        seconds = min(seconds, identity.logged_in + _renewable_seconds(settings, identity) - now)
        if seconds <= 0:
            raise bad_token("its login was too long ago to be renewed", has_expired=True)
        ends_before = {"id": identity.session, "expires": Less(from_now(seconds))}
        await call.backend.documents.update(SESSIONS, ends_before, Update(set={"expires": from_now(seconds)}))
    return call.backend.auth.issue(identity, seconds), seconds


def _renewable_seconds(settings: Settings, identity: Identity) -> int:
    """For how long after its login a session can get further tokens."""
    return settings.oidc_session_seconds if _is_of_provider(identity) else settings.token_renewal_days * 86400


def _is_of_provider(identity: Identity) -> bool:
    return identity.key is not None and identity.key.startswith(PROVIDER_KEY)


async def _begin(call: Call, identity: Identity, expires: str) -> None:
    """Store the new session, and delete expired ones."""
    documents, now = call.backend.documents, utc_now()
    session = {
        "id": identity.session,
        "user": identity.user,
        "company": identity.company,
        "created": now,
        "last_used": now,
        "expires": expires,
        "address": call.client,
        "agent": call.headers.get("user-agent", "")[:200],
        "worker": call.worker[:200],
    }
    await documents.delete(SESSIONS, {"expires": Less(now)})
    await documents.insert(SESSIONS, [session])


async def sessions_of(
    documents: DocumentStore, company: str, user: str | None = None, limit: int | None = None
) -> list[Document]:
    """The active sessions of a user, or of a whole company, the last used first."""
    wanted = {"company": company, "expires": AtLeast(utc_now()), **({} if user is None else {"user": user})}
    return await documents.find(SESSIONS, wanted, sort=[("last_used", -1)], limit=limit)


async def end_sessions(documents: DocumentStore, sessions: Sequence[Document], at_once: int = ENDED_AT_ONCE) -> int:
    """Refuse all tokens of these sessions from now on; returns how many sessions there were, `at_once` of one write."""
    for start in range(0, len(sessions), at_once):
        group = sessions[start : start + at_once]
        try:
            await documents.insert(
                ENDED_SESSIONS, [_ended(item["id"], item["user"], item["company"]) for item in group]
            )
        except DuplicateDocument:  # one of them was ended meanwhile: end them one at a time
            for item in group:
                await _end(documents, item["id"], item["user"], item["company"])
        await documents.delete(SESSIONS, {"id": In([item["id"] for item in group])})
    forget(documents)
    return len(sessions)


def set_cookie(call: Call, token: str, seconds: int) -> None:
    """Have the browser store the token as a cookie, or delete the cookie if `seconds` is 0.

    Calls from other sites' pages set no cookie: their link or form could log the user out, or in as another user.
    """
    if not call.backend.auth.origins.may_set_cookie(call.method, call.headers):
        return
    # A proxy says that the client uses TLS by the first header, a browser says the same of its page by the second.
    by_tls = any(call.headers.get(name, "").startswith("https") for name in ("x-forwarded-proto", "origin"))
    secure = "; Secure" if by_tls or call.backend.settings.tls_cert else ""
    cookie = f"{TOKEN_COOKIE}={token}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Lax{secure}"
    call.response_headers.append(("Set-Cookie", cookie))


async def end_session(call: Call) -> None:
    """Refuse all tokens of the caller's session from now on, and clear the cookie."""
    documents, session = call.backend.documents, call.identity.session
    set_cookie(call, "", 0)
    if session is None:
        return
    await _end(documents, session, call.identity.user, call.identity.company)
    forget(documents)


async def _end(documents: DocumentStore, session: str, user: str, company: str) -> None:
    with contextlib.suppress(DuplicateDocument):  # already ended, by a second tab for example
        await documents.insert(ENDED_SESSIONS, [_ended(session, user, company)])
    await documents.delete(SESSIONS, {"id": session})
    await documents.delete(ENDED_SESSIONS, {"expires": Less(utc_now())})


def _ended(session: str, user: str, company: str) -> Document:
    """The document of an ended session. It stays as long as one of its tokens could be valid."""
    times = {"ended": utc_now(), "expires": from_now(LONGEST_TOKEN)}
    return {"id": session, "company": company, "user": user, **times}

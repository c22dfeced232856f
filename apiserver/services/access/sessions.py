"""Logins: the tokens they give, the web UI's cookie, and their end.

A token names its session, and a token that is got by another has the same one: to log out ends them all, here at once
and on other servers within two seconds.
"""

from __future__ import annotations

import contextlib

from apiserver.rpc.auth import TOKEN_COOKIE
from apiserver.rpc.call import Identity
from apiserver.services.access.identities import ENDED_SESSIONS, forget
from apiserver.services.backend import Call
from apiserver.stores.documents.base import DuplicateDocument
from apiserver.times import from_now, utc_now

SHORTEST_TOKEN = 3600
"""Seconds; SDK clients log in again when less than six minutes are left."""
LONGEST_TOKEN = 365 * 86400


def token_for(call: Call, identity: Identity, asked: int | None) -> tuple[str, int]:
    """A token for who `identity` is, and the seconds that it is valid: those asked for, within limits."""
    seconds = call.backend.settings.token_lifetime if asked is None else asked
    seconds = min(max(seconds, SHORTEST_TOKEN), LONGEST_TOKEN)
    return call.backend.auth.issue(identity, seconds), seconds


def set_cookie(call: Call, token: str, seconds: int) -> None:
    """Have the browser keep the token, or forget it at 0 seconds; from a page that came by TLS, by TLS only.

    Not by another page's doing: a link or a form would log the user out, or in as whoever made it.
    """
    if not call.backend.auth.origins.may_set_cookie(call.method, call.headers):
        return
    secure = "; Secure" if _by_tls(call) else ""
    cookie = f"{TOKEN_COOKIE}={token}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Lax{secure}"
    call.response_headers.append(("Set-Cookie", cookie))


def _by_tls(call: Call) -> bool:
    """What the proxy says that ends TLS, and what browsers say of pages."""
    return any(call.headers.get(name, "").startswith("https") for name in ("x-forwarded-proto", "origin"))


async def end_session(call: Call) -> None:
    """Refuse all tokens of the caller's login from now on, and clear the cookie."""
    documents, session = call.backend.documents, call.identity.session
    set_cookie(call, "", 0)
    if session is None:
        return
    ended = {"id": session, "company": call.identity.company, "user": call.identity.user, "ended": utc_now()}
    with contextlib.suppress(DuplicateDocument):  # a second tab logs out, too
        await documents.insert(ENDED_SESSIONS, [{**ended, "expires": from_now(LONGEST_TOKEN)}])
    forget(documents)
    await documents.delete(ENDED_SESSIONS, {"expires": {"$lt": utc_now()}})

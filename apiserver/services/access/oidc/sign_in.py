"""Beginning, finishing and ending a sign-in at the provider, for the sign-in page.

Strangers may begin and finish. To begin costs them nothing that lasts, and the server nothing but an answer. To finish
needs the cookie of a beginning: without it, nothing is asked and nothing counted. With it, failures count as those of
passwords do, for the beginning and for the address, and the provider is asked for eight at a time. They do not count
for an address where somebody has signed in at the provider before, nor if the provider itself fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

from apiserver.common.errors import Refusal, Why, forbidden, unavailable, validation_error
from apiserver.common.times import from_now, utc_now
from apiserver.rpc.auth import cookie
from apiserver.rpc.call import Identity
from apiserver.services.access.credentials import insert_if_new
from apiserver.services.access.identities import digest
from apiserver.services.access.oidc import begun
from apiserver.services.access.oidc.begun import COOKIE
from apiserver.services.access.oidc.id_tokens import BadIdToken
from apiserver.services.access.oidc.people import user_of
from apiserver.services.access.oidc.provider import Provider
from apiserver.services.access.oidc.requests import ProviderFailed, StillFailing
from apiserver.services.backend import Call
from apiserver.settings.settings import Settings
from apiserver.stores.documents.query import Less

logger = logging.getLogger("apiserver.sign_in")

#: Collection of sign-ins that were finished, by digests of their states, so that none is finished twice.
FINISHED = "finished_sign_ins"
#: Collection of ID tokens by session id: by them, the provider knows what to end.
ID_TOKENS = "id_tokens"
#: Addresses at which somebody has signed in are remembered under this name. Callbacks that fail are counted under names
#: that begin with it, another one for each sign-in that was begun. So where somebody has signed in before, nobody waits
#: for what others at the address did. No user has such a name, as names have no line breaks.
_COUNTED = "\n sign-in at the provider"
#: The only path that the cookie of a beginning is sent to.
_PATH = "/auth.finish_provider_login"
#: The meaning of the provider's errors (RFC 6749, OpenID Connect).
_MEANINGS = {
    "access_denied": "The provider did not let you in, or you did not want to go on.",
    "login_required": "The provider wants you to sign in there first.",
    "temporarily_unavailable": "The provider has too much to do. Try again later.",
    "server_error": "The provider has failed. Try again later.",
}


def provider_modes(settings: Settings) -> dict[str, Any]:
    """The facts of the provider that a login page must know."""
    return {"name": settings.oidc_name} if settings.oidc_issuer else {}


async def begin(call: Call, next: str) -> str:
    """Where the page sends the browser; the answer sets the cookie that `finish` wants.

    Raises Refusal(FORBIDDEN) unless a page of this server asks, Refusal(UNAVAILABLE) if the provider fails.
    """
    origin, provider = _origin(call), _provider(call)
    new = begun.begin(call.backend.settings.token_secret, origin, next)
    async with _asked(provider):
        address = await provider.sign_in_address(new)
    _set_cookie(call, new.cookie(), begun.SECONDS)
    return address


async def finish(call: Call, request: dict[str, Any]) -> tuple[Identity, str, str]:
    """Who signed in, their ID token, and the path to go to; by what the provider gave the browser.

    It works once, in the browser in which it was begun. Raises Refusal(WRONG_CREDENTIALS) if it proves nothing,
    Refusal(FORBIDDEN) if they may not come in, Refusal(OVERLOADED) after too many failures, and Refusal(UNAVAILABLE) if
    the provider fails.
    """
    origin, provider = _origin(call), _provider(call)
    settings, documents, attempts = call.backend.settings, call.backend.documents, call.backend.attempts
    own = begun.of_cookie(settings.token_secret, cookie(call.headers.get("cookie", ""), COOKIE) or "", request["state"])
    if own is None or own.origin != origin:
        raise _refused(
            "This sign-in was not begun in this browser, or longer than ten minutes ago, or another was begun since. "
            "Try again."
        )
    counted = f"{_COUNTED} {own.state}"
    attempts.begin(counted, call.client, remembered_as=_COUNTED)
    _set_cookie(call, "", 0)
    try:
        async with _asked(provider):
            await _check_sender(provider, settings, request)
            if request.get("code") is None:
                said = str(request.get("error"))
                raise _refused(_MEANINGS.get(said, "The provider did not sign you in: its log says why."))
            somebody = await provider.signed_in(own, request["code"])
    except Refusal as error:
        if error.why is not Why.WRONG_CREDENTIALS:  # the provider failed, or too many asked it
            attempts.take_back(counted, call.client, remembered_as=_COUNTED)
        raise
    await documents.delete(FINISHED, {"expires": Less(utc_now())})
    if not await insert_if_new(documents, FINISHED, {"id": digest(own.state), "expires": from_now(begun.SECONDS)}):
        raise _refused("This sign-in was finished before. Try again.")
    attempts.take_back(counted, call.client, remembered_as=_COUNTED)
    identity = await user_of(documents, settings, somebody.claims)
    attempts.succeeded(_COUNTED, call.client)
    return identity, somebody.id_token, own.next


async def keep_id_token(call: Call, token: str, id_token: str) -> None:
    """Keep the ID token of a session, for signing out. `token` is one of the session."""
    identity = await call.backend.auth.by_token(token)
    expires = from_now(call.backend.settings.oidc_session_seconds)
    kept = {"id": identity.session, "user": identity.user, "company": identity.company, "id_token": id_token}
    await call.backend.documents.delete(ID_TOKENS, {"expires": Less(utc_now())})
    await call.backend.documents.insert(ID_TOKENS, [{**kept, "expires": expires}])


async def sign_out_address(call: Call) -> str | None:
    """Where the page sends the browser to sign out at the provider or the proxy, too; None if it need not.

    It ends nothing here.
    """
    settings, session, origin = call.backend.settings, call.identity.session, call.headers.get("origin")
    if settings.proxy_sign_out and call.headers.get(settings.proxy_user_header.lower()):
        return settings.proxy_sign_out
    provider = call.backend.provider
    if provider is None or session is None or not origin or not settings.oidc_sign_out:
        return None
    kept = await call.backend.documents.find_one(ID_TOKENS, {"id": session})
    if kept is None:
        return None
    await call.backend.documents.delete(ID_TOKENS, {"id": session})
    with contextlib.suppress(ProviderFailed, TimeoutError):  # who signs out is signed out here, whatever it says
        async with asyncio.timeout(provider.bounds.patience_seconds):
            return await provider.sign_out_address(kept["id_token"], origin)
    return None


async def _check_sender(provider: Provider, settings: Settings, request: dict[str, Any]) -> None:
    """Refuse what another provider sent the browser with, as far as ours says who it is."""
    issuer = request.get("iss")
    if issuer is None and not (await provider.addresses()).names_itself:
        return
    if issuer != settings.oidc_issuer:
        raise BadIdToken("another provider sent the browser (iss)")


@contextlib.asynccontextmanager
async def _asked(provider: Provider) -> AsyncIterator[None]:
    """What goes wrong with the provider, in words for people. The log says more."""
    try:
        async with asyncio.timeout(provider.bounds.patience_seconds):
            yield
    except BadIdToken as error:
        logger.warning("what the provider says was refused: %s", error)
        raise _refused("What the provider says does not prove who you are. The server's log says why.") from None
    except (ProviderFailed, TimeoutError) as error:
        if not isinstance(error, StillFailing):  # strangers could fill the log
            logger.warning("nobody can sign in at the provider: %s", str(error) or "it takes too long")
        raise unavailable("The provider of sign-ins does not answer as it should. Try again in a moment.") from None


def _provider(call: Call) -> Provider:
    if call.backend.provider is None:
        raise validation_error("this server has no provider to sign in at (oidc_issuer)")
    return call.backend.provider


def _origin(call: Call) -> str:
    """The origin of the page that asks. Raises Refusal(FORBIDDEN) unless it is of this server."""
    call.backend.auth.origins.check(call.method, call.headers, changes=True)
    origin = call.headers.get("origin")
    if origin is None:
        raise forbidden("the browser does not say which page asks")
    return origin


def _set_cookie(call: Call, value: str, seconds: int) -> None:
    secure = "; Secure" if call.headers.get("origin", "").startswith("https") else ""
    said = f"{COOKIE}={value}; Max-Age={seconds}; Path={_PATH}; HttpOnly; SameSite=Strict{secure}"
    call.response_headers.append(("Set-Cookie", said))


def _refused(message: str) -> Refusal:
    return Refusal(Why.WRONG_CREDENTIALS, message)

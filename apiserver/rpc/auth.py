"""Finds out who is calling: by an access key (Basic), a token (Bearer, or the web UI's cookie), or a trusted proxy.

The cookie, and the header in which a proxy says who has signed in there, count only without an Authorization header,
and only for requests that no foreign page can have made.
"""

from __future__ import annotations

import binascii
import time
from base64 import b64decode
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from typing import Any

from apiserver.common.errors import Refusal, Why, impersonation_error
from apiserver.rpc.call import ANONYMOUS, Identity
from apiserver.rpc.origins import Origins
from apiserver.rpc.tokens import Tokens, bad_token

#: The name in the scope of a request under which its caller is kept, once they are known.
_CALLER = "caller"
#: The cookie that `auth.login` sets for the web UI.
TOKEN_COOKIE = "clearml_token_basic"

#: (access key, secret, client's address) → the key's owner, or None if key and secret are not valid. Raises 429 after
#: too many guesses from the address.
Lookup = Callable[[str, str, str], Awaitable[Identity | None]]
#: The identity that a token names → what it is today; None if the access key, session or user no longer exists.
Current = Callable[[Identity], Awaitable[Identity | None]]
#: (caller, user id) → the identity of that user, or None if there is no such user or the caller may not act for them.
Become = Callable[[Identity, str], Awaitable[Identity | None]]
#: What a trusted proxy says of who has signed in there → the identity of that user. Raises 401 if it names nobody, 403
#: if they may not come in.
OfProxy = Callable[[str], Awaitable[Identity]]


class Authenticator:
    """Finds the caller of a request by its headers.

    `lookup` checks access keys. `current` ends tokens early. `become` lets callers act for other users. `of_proxy`
    takes what a trusted proxy says in the header `proxy_header` (in lower case). `allowed_origins`, such as
    `http://ui.example:8080`, are those of other pages that may use the cookie. ValueError if `token_secret` is shorter
    than 32 bytes. `clock` says how late it is.
    """

    def __init__(
        self,
        token_secret: str,
        lookup: Lookup,
        *,
        current: Current | None = None,
        become: Become | None = None,
        proxy_header: str = "",
        of_proxy: OfProxy | None = None,
        allowed_origins: Collection[str] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._tokens = Tokens(token_secret, clock)
        self._lookup = lookup
        self._current = current
        self._become = become
        self._proxy_header = proxy_header
        self._of_proxy = of_proxy
        self.origins = Origins(allowed_origins)

    def issue(self, identity: Identity, lifetime_s: int) -> str:
        """A token for `identity`, valid for `lifetime_s` seconds."""
        return self._tokens.issue(identity, lifetime_s)

    async def authenticate(
        self,
        headers: Mapping[str, str],
        *,
        method: str = "POST",
        changes: bool = True,
        forms: bool = False,
        client: str = "",
    ) -> Identity:
        """The caller; `headers` have lower-case names, `client` is the address that the request came from.

        The other arguments matter only to the cookie: `changes` says whether the request may change anything, `forms`
        whether bodies other than JSON are allowed.

        401/20 without credentials, 401/10 for an unknown scheme, 401/22 for a wrong key or secret, 429 after too many
        wrong secrets, 401/30 for a token that is bad or has ended, 403/21 if the cookie may not be used for the
        request, 400/6 if the caller may not act for the user they name.
        """
        caller = await self._caller(method, headers, client, changes=changes, forms=forms)
        return await self.acting(caller, headers)

    async def _caller(
        self, method: str, headers: Mapping[str, str], client: str, *, changes: bool, forms: bool
    ) -> Identity:
        scheme, _, credentials = headers.get("authorization", "").strip().partition(" ")
        match scheme.lower():
            case "basic":
                return await self._by_key(credentials, client)
            case "bearer":
                return await self.by_token(credentials.strip())
            case "":
                token = cookie(headers.get("cookie", ""), TOKEN_COOKIE)
                named = headers.get(self._proxy_header)
                if not token and not named:
                    raise Refusal(Why.NO_CREDENTIALS, "Unauthorized (missing credentials)")
                self.origins.check(method, headers, changes=changes, forms=forms)
                return await (self._of_proxy(named) if named and self._of_proxy else self.by_token(token or ""))
        raise Refusal(Why.BAD_SCHEME, "Unauthorized (bad authentication header type)")

    async def _by_key(self, credentials: str, client: str) -> Identity:
        key, secret = basic_credentials(credentials) or ("", "")
        identity = await self._lookup(key, secret, client) if key and secret else None
        if identity is None:
            raise bad_credentials()
        return identity

    async def by_token(self, token: str) -> Identity:
        """The owner of a token as they are today; 401/30 if this server did not issue the token, or it has ended."""
        return await self.today(self._tokens.read(token))

    async def today(self, claimed: Identity) -> Identity:
        """The identity that a token named, as it is today; 401/30 if it has ended."""
        identity = await self._current(claimed) if self._current else claimed
        if identity is None:
            raise bad_token("it has ended with its session, its access key or its user")
        return identity

    async def acting(self, caller: Identity, headers: Mapping[str, str]) -> Identity:
        """The user that the caller acts for, by request headers; 400/6 if there is none or the caller may not."""
        user = headers.get("x-clearml-impersonate-as") or headers.get("x-trains-impersonate-as")
        if not user or user == caller.user:
            return caller
        other = await self._become(caller, user) if self._become else None
        if other is None:
            raise impersonation_error(user)
        return other


def note_caller(scope: MutableMapping[str, Any], caller: Identity) -> None:
    """Note in the scope of a request who calls, for those who see the answer, such as the audit log."""
    scope[_CALLER] = caller


def noted_caller(scope: Mapping[str, Any]) -> Identity:
    """Who was noted to call; ANONYMOUS if nobody was."""
    caller: Identity = scope.get(_CALLER, ANONYMOUS)
    return caller


def basic_credentials(text: str) -> tuple[str, str] | None:
    """Name and secret from what follows "Basic " in an Authorization header; None if it cannot be decoded."""
    try:
        name, _, secret = b64decode(text.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return None
    return name, secret


def bad_credentials() -> Refusal:
    """401/22. It does not say whether the name or the secret is wrong, so that guessing teaches nothing."""
    return Refusal(Why.WRONG_CREDENTIALS, "Unauthorized (invalid credentials)")


def cookie(header: str, name: str) -> str | None:
    """The value of a cookie in a Cookie header."""
    for pair in header.split(";"):
        key, _, value = pair.partition("=")
        if key.strip() == name:
            return value.strip().strip('"')
    return None

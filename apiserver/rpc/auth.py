"""Who is calling: access keys (Basic), tokens (Bearer, or the web UI's cookie), and in whose name.

The Authorization header decides when there is one; the cookie counts only without it, and only for requests that no
foreign page can have made.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Awaitable, Callable, Collection, Mapping

from apiserver.rpc.call import Identity
from apiserver.rpc.errors import ApiError, impersonation_error, unauthorized
from apiserver.rpc.origins import Origins
from apiserver.rpc.tokens import Tokens, bad_token

#: The cookie that `auth.login` sets for the web UI.
TOKEN_COOKIE = "clearml_token_basic"

#: Finds who an access key and its secret, sent from an address, belong to; None when they belong to nobody. 429 when
#: too many guesses came from there.
Lookup = Callable[[str, str, str], Awaitable[Identity | None]]
#: Who a token's bearer is by now; None when the token has ended with its access key, its session or its user.
Current = Callable[[Identity], Awaitable[Identity | None]]
#: Who a caller becomes that asks to be a user; None when that is nobody, or nobody they may become.
Become = Callable[[Identity, str], Awaitable[Identity | None]]


class Authenticator:
    """Tells who a request is from, by its headers.

    `lookup` answers for access keys; with `current`, tokens end with what they came from; with `become`, callers may
    act for others. `allowed_origins` are those of pages on other hosts that may use the cookie, such as
    `http://ui.example:8080`. ValueError when `token_secret` is shorter than 32 bytes.
    """

    def __init__(
        self,
        token_secret: str,
        lookup: Lookup,
        *,
        current: Current | None = None,
        become: Become | None = None,
        allowed_origins: Collection[str] = (),
    ) -> None:
        self._tokens = Tokens(token_secret)
        self._lookup = lookup
        self._current = current
        self._become = become
        self.origins = Origins(allowed_origins)

    def issue(self, identity: Identity, lifetime_s: int) -> str:
        """A token that says `identity` for `lifetime_s` seconds."""
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
        """The caller, by request headers of lower-case names; `changes`: whether the request may change anything.

        `forms`: whether it may change it by other bodies than JSON. Both, and the method, matter to the cookie alone.
        `client` is the address that the request came from.

        401/20 without credentials, 401/10 for an unknown scheme, 401/22 for a wrong key or secret, 429 after too many
        wrong secrets, 401/30 for a bad or ended token, 403/21 for a cookie that may not be used so, 400/6 for who may
        not be another user.
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
                token = _cookie(headers.get("cookie", ""), TOKEN_COOKIE)
                if not token:
                    raise unauthorized(20, "Unauthorized (missing credentials)")
                self.origins.check(method, headers, changes=changes, forms=forms)
                return await self.by_token(token)
        raise unauthorized(10, "Unauthorized (bad authentication header type)")

    async def _by_key(self, credentials: str, client: str) -> Identity:
        key, secret = basic_credentials(credentials) or ("", "")
        identity = await self._lookup(key, secret, client) if key and secret else None
        if identity is None:
            raise bad_credentials()
        return identity

    async def by_token(self, token: str) -> Identity:
        """Who a token is of by now; 401/30 when it is not one of ours, or has ended."""
        claimed = self._tokens.read(token)
        identity = await self._current(claimed) if self._current else claimed
        if identity is None:
            raise bad_token("it has ended with its session, its access key or its user")
        return identity

    async def acting(self, caller: Identity, headers: Mapping[str, str]) -> Identity:
        """Who the caller acts for, by request headers; 400/6 when they may not, or there is no such user."""
        user = headers.get("x-clearml-impersonate-as") or headers.get("x-trains-impersonate-as")
        if not user or user == caller.user:
            return caller
        other = await self._become(caller, user) if self._become else None
        if other is None:
            raise impersonation_error(user)
        return other


def basic_credentials(text: str) -> tuple[str, str] | None:
    """Name and secret of an Authorization header, after "Basic "; None when they are not to be read."""
    try:
        name, _, secret = b64decode(text.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return None
    return name, secret


def bad_credentials() -> ApiError:
    """401/22, whatever is wrong with a name and its secret: who guesses learns nothing."""
    return unauthorized(22, "Unauthorized (invalid credentials)")


def _cookie(header: str, name: str) -> str | None:
    for pair in header.split(";"):
        key, _, value = pair.partition("=")
        if key.strip() == name:
            return value.strip().strip('"')
    return None

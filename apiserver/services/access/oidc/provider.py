"""The provider: its addresses and keys, which are asked for when they are needed first, and kept for an hour.

A provider that is down keeps nobody from starting the server, or from signing in otherwise. While it fails, it is asked
once in five seconds, however many want to sign in, and the others are told at once.
"""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Generic, TypeVar
from urllib.parse import quote_plus, urlencode

from apiserver.common.errors import overloaded
from apiserver.common.extras import installed_by
from apiserver.common.urls import is_private
from apiserver.services.access.oidc.begun import Begun
from apiserver.services.access.oidc.id_tokens import BadIdToken, Claims, UnknownKey, verified
from apiserver.services.access.oidc.requests import SECONDS, Answer, ProviderFailed, StillFailing, ask
from apiserver.settings.settings import Settings, SettingsError

#: Seconds that addresses and keys are kept; and that must lie between two requests for them.
KEPT_SECONDS, PAUSE_SECONDS = 3600.0, 5.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ProviderBounds:
    """Limits of requests to the provider. Times are in seconds."""

    answer_seconds: float = SECONDS
    """How long one answer may take."""
    patience_seconds: float = 20
    """How long somebody waits for all of its answers."""
    at_once: int = 8
    """How many codes are exchanged at once."""
    waiting: int = 64
    """How many more wait for that."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """The provider's description of itself."""

    authorization: str
    token: str
    keys: str
    userinfo: str | None
    end_session: str | None
    by_form: bool
    """Whether the secret goes into the form, as the provider does not take it in a header."""
    names_itself: bool
    """Whether it says who it is when it sends a browser back (RFC 9207)."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """Somebody who signed in at the provider."""

    claims: Claims
    id_token: str


class Provider:
    """The provider that the settings name. SettingsError without the package that verifies signatures."""

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], float] = time.monotonic,
        bounds: ProviderBounds | None = None,
    ) -> None:
        if find_spec("cryptography") is None:
            raise SettingsError(
                f"oidc_issuer: signing in at a provider needs an optional package: {installed_by('oidc')}"
            )
        self._settings = settings
        self.bounds = bounds = bounds or ProviderBounds()
        self._addresses = _Kept(self._find_addresses, clock)
        self._keys = _Kept(self._find_keys, clock)
        self._turn = asyncio.Semaphore(bounds.at_once)
        self._waiting = 0

    async def addresses(self) -> Addresses:
        """Its addresses. ProviderFailed if it does not tell them."""
        return await self._addresses.get(KEPT_SECONDS)

    async def sign_in_address(self, begun: Begun) -> str:
        """Where a browser goes to sign in. ProviderFailed."""
        asked = {
            "response_type": "code",
            "client_id": self._settings.oidc_client_id,
            "redirect_uri": begun.address,
            "scope": self._settings.oidc_scopes,
            "state": begun.state,
            "nonce": begun.nonce,
            "code_challenge": begun.challenge,
            "code_challenge_method": "S256",
        }
        return _with_query((await self.addresses()).authorization, asked)

    async def sign_out_address(self, id_token: str, origin: str) -> str | None:
        """Where a browser goes to sign out at the provider, too; None if there is no such place. ProviderFailed."""
        end_session = (await self.addresses()).end_session
        if end_session is None:
            return None
        asked = {"client_id": self._settings.oidc_client_id, "post_logout_redirect_uri": f"{origin}/sign-in"}
        return _with_query(end_session, {**asked, "id_token_hint": id_token})

    async def signed_in(self, begun: Begun, code: str) -> SignedIn:
        """Who signed in, by the code that the provider gave the browser.

        Raises ProviderFailed, or BadIdToken, also if the provider refuses the code; and Refusal(OVERLOADED) if too many
        codes are exchanged at once.
        """
        if self._waiting >= self.bounds.waiting:
            raise overloaded("Too many people sign in at once")
        self._waiting += 1
        try:
            async with self._turn:
                return await self._exchange(begun, code)
        finally:
            self._waiting -= 1

    async def _exchange(self, begun: Begun, code: str) -> SignedIn:
        addresses = await self.addresses()
        answer = await self._tokens(addresses, begun, code)
        id_token, access_token = answer.get("id_token"), answer.get("access_token")
        if not isinstance(id_token, str):
            raise ProviderFailed(f"{addresses.token} answers no id_token")
        access_token = access_token if isinstance(access_token, str) else None
        claims = await self._verified(id_token, begun.nonce, access_token)
        if access_token is not None and addresses.userinfo is not None and self._lacks(claims):
            claims = {**await self._more_of(claims, addresses.userinfo, access_token), **claims}
        return SignedIn(claims, id_token)

    async def _tokens(self, addresses: Addresses, begun: Begun, code: str) -> dict[str, Any]:
        client, secret = self._settings.oidc_client_id, self._settings.oidc_client_secret
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": begun.address}
        form["code_verifier"] = begun.verifier
        headers = {}
        if secret and not addresses.by_form:
            credentials = f"{quote_plus(client)}:{quote_plus(secret)}".encode()
            headers["authorization"] = f"Basic {b64encode(credentials).decode()}"
        else:
            form |= {"client_id": client, **({"client_secret": secret} if secret else {})}
        status, answer = await self._ask(addresses.token, form=form, headers=headers)
        if status == 400 and answer.get("error") == "invalid_grant":
            raise BadIdToken("the provider does not know the code, or it was used before")
        if status != 200:
            raise ProviderFailed(f"{addresses.token} answers {status}: {str(answer.get('error'))[:200]}")
        return answer

    async def _verified(self, id_token: str, nonce: str, access_token: str | None) -> Claims:
        def by(keys: Sequence[Mapping[str, Any]]) -> Claims:
            return verified(
                id_token,
                keys,
                issuer=self._settings.oidc_issuer,
                client_id=self._settings.oidc_client_id,
                nonce=nonce,
                access_token=access_token,
            )

        try:
            return by(await self._keys.get(KEPT_SECONDS))
        except UnknownKey:
            return by(await self._keys.get(PAUSE_SECONDS))

    def _lacks(self, claims: Claims) -> bool:
        """Whether the ID token does not say what the settings ask for: some providers say it only in `userinfo`."""
        wants_groups = bool(self._settings.oidc_groups) and claim(claims, self._settings.oidc_groups_claim) is None
        wants_email = bool(self._settings.oidc_email_domains) and "email" not in claims
        return wants_groups or wants_email or not {"preferred_username", "email", "name"} & claims.keys()

    async def _more_of(self, claims: Claims, userinfo: str, access_token: str) -> dict[str, Any]:
        status, more = await self._ask(userinfo, headers={"authorization": f"Bearer {access_token}"})
        if status != 200:
            raise ProviderFailed(f"{userinfo} answers {status}")
        if more.get("sub") != claims["sub"]:
            raise BadIdToken("userinfo is about somebody else (sub)")
        return more

    async def _ask(
        self, url: str, *, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        return await ask(url, form=form, headers=headers, seconds=self.bounds.answer_seconds)

    async def _find_addresses(self) -> Addresses:
        issuer = self._settings.oidc_issuer
        url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
        status, said = await self._ask(url)
        if status != 200:
            raise ProviderFailed(f"{url} answers {status}")
        if said.get("issuer") != issuer:
            raise ProviderFailed(f"{url} is about {str(said.get('issuer'))[:200]!r}, and oidc_issuer is {issuer!r}")
        methods = said.get("token_endpoint_auth_methods_supported")
        return Addresses(
            authorization=_address(said, "authorization_endpoint"),
            token=_address(said, "token_endpoint"),
            keys=_address(said, "jwks_uri"),
            userinfo=_address(said, "userinfo_endpoint") if said.get("userinfo_endpoint") else None,
            end_session=_address(said, "end_session_endpoint") if said.get("end_session_endpoint") else None,
            by_form=isinstance(methods, list) and "client_secret_basic" not in methods,
            names_itself=said.get("authorization_response_iss_parameter_supported") is True,
        )

    async def _find_keys(self) -> list[Mapping[str, Any]]:
        url = (await self.addresses()).keys
        status, said = await self._ask(url)
        keys = said.get("keys")
        if status != 200 or not isinstance(keys, list):
            raise ProviderFailed(f"{url} answers {status}, without keys")
        return [key for key in keys if isinstance(key, dict)]


class _Kept(Generic[T]):
    """The value that `find` found, and when. One call finds it for all who ask meanwhile."""

    def __init__(self, find: Callable[[], Awaitable[T]], clock: Callable[[], float]) -> None:
        self._find = find
        self._clock = clock
        self._finding = asyncio.Lock()
        self._found: tuple[T, float] | None = None
        self._failed: tuple[str, float] | None = None

    async def get(self, seconds: float) -> T:
        """The value found in the last `seconds`, or now. ProviderFailed, again in the pause after a failure."""
        async with self._finding:
            if self._found is not None and self._clock() - self._found[1] < seconds:
                return self._found[0]
            if self._failed is not None and self._clock() - self._failed[1] < PAUSE_SECONDS:
                raise StillFailing(self._failed[0])
            try:
                value = await self._find()
            except ProviderFailed as failure:
                self._failed = str(failure), self._clock()
                raise
            self._found = value, self._clock()
            return value


def claim(claims: Claims, path: str) -> Any:
    """The claim of this name, or at this path of names with dots between: `realm_access.roles`. None without one."""
    if path in claims:
        return claims[path]
    found: Any = claims
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _address(said: Mapping[str, Any], name: str) -> str:
    address = said.get(name)
    if not isinstance(address, str) or not is_private(address):
        raise ProviderFailed(f"its {name} is no address of https: {str(address)[:200]!r}")
    return address


def _with_query(address: str, query: Mapping[str, str]) -> str:
    return f"{address}{'&' if '?' in address else '?'}{urlencode(query)}"

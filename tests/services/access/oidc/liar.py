"""A provider of OpenID Connect in the test's event loop, which may be told to lie, to fail and to take long.

It checks codes, addresses, secrets and PKCE as real ones do. `tests/provider` runs a real one, which cannot lie.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from base64 import b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from tests.harness import free_ports

CLIENT, SECRET = "events server", "the provider's secret: ü&%"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Key:
    """A key that signs ID tokens."""

    def __init__(self, kid: str) -> None:
        self.kid = kid
        self.private = ec.generate_private_key(ec.SECP256R1())

    @property
    def public(self) -> dict[str, Any]:
        return {**ECAlgorithm.to_jwk(self.private.public_key(), as_dict=True), "kid": self.kid, "use": "sig"}


class Liar:
    """`claims`, `header` and `said` replace what it says; None leaves it out. `answer` replaces whole answers."""

    def __init__(self, port: int) -> None:
        self.issuer = f"http://127.0.0.1:{port}"
        self.port = port
        self.keys = [Key("first")]
        self.signing: Any = None
        """What signs instead of the first key."""
        self.person: dict[str, Any] = {"sub": "8f2a", "preferred_username": "ada", "email": "ada@example.org"}
        self.claims: dict[str, Any] = {}
        self.header: dict[str, Any] = {}
        self.said: dict[str, Any] = {}
        self.userinfo: dict[str, Any] = {}
        self.answer: dict[str, Handler] = {}
        self.forgets_codes = True
        self.asked: Counter[str] = Counter()
        self._codes: dict[str, dict[str, str]] = {}

    def sign_in(self, address: str) -> dict[str, str]:
        """Somebody signs in at the address that a browser was sent to: what it is sent back with."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert address.startswith(f"{self.issuer}/authorize?")
        assert (asked["response_type"], asked["client_id"]) == ("code", CLIENT)
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_hex(8)
        self._codes[code] = asked
        return {"code": code, "state": asked["state"]}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked[request.path] += 1
        if request.path in self.answer:
            return await self.answer[request.path](request)
        if request.path == "/token":
            return await self._token(request)
        if request.path == "/userinfo":
            assert request.headers["authorization"] == "Bearer an access token"
            return web.json_response({"sub": self.person["sub"], **self.userinfo})
        return web.json_response(self._answers(request.path))

    def _answers(self, path: str) -> dict[str, Any]:
        if path == "/keys":
            return {"keys": [key.public for key in self.keys]}
        assert path == "/.well-known/openid-configuration"
        endpoints = {"authorization": "authorize", "token": "token", "userinfo": "userinfo", "end_session": "end"}
        addresses = {f"{name}_endpoint": f"{self.issuer}/{path}" for name, path in endpoints.items()}
        return _without_none({"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys", **addresses, **self.said})

    async def _token(self, request: web.Request) -> web.Response:
        form = await request.post()
        scheme, _, credentials = request.headers["authorization"].partition(" ")
        assert (scheme, b64decode(credentials)) == ("Basic", b"events+server:the+provider%27s+secret%3A+%C3%BC%26%25")
        code = str(form["code"])
        asked = self._codes.get(code)
        digest = hashlib.sha256(str(form["code_verifier"]).encode()).digest()
        challenge = urlsafe_b64encode(digest).rstrip(b"=").decode()
        if asked is None or (asked["redirect_uri"], asked["code_challenge"]) != (form["redirect_uri"], challenge):
            return web.json_response({"error": "invalid_grant"}, status=400)
        if self.forgets_codes:
            del self._codes[code]
        now = int(time.time())
        said = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 60, "nonce": asked["nonce"]}
        token = self.token({**said, **self.person, **self.claims})
        return web.json_response({"id_token": token, "access_token": "an access token", "token_type": "Bearer"})

    def token(self, claims: dict[str, Any]) -> str:
        header = {"alg": "ES256", "kid": self.keys[0].kid, **self.header}
        key = self.keys[0].private if self.signing is None and header["alg"] != "none" else self.signing
        return jwt.encode(_without_none(claims), key, header["alg"], _without_none(header))


def _without_none(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


@asynccontextmanager
async def running_liar() -> AsyncIterator[Liar]:
    """The provider, at a port of this machine."""
    [port] = free_ports(1)
    liar = Liar(port)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", liar.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    yield liar
    await runner.cleanup()


async def slowly(request: web.Request) -> web.StreamResponse:
    """Answer a byte at a time, for ever."""
    response = web.StreamResponse(headers={"content-type": "application/json"})
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(0.01)


async def hugely(request: web.Request) -> web.StreamResponse:
    """Answer more than anybody wants."""
    response = web.StreamResponse(headers={"content-type": "application/json"})
    await response.prepare(request)
    for _ in range(1000):
        await response.write(b" " * 65536)
    return response


async def elsewhere(request: web.Request) -> web.StreamResponse:
    """Send whoever asks to where everything is said."""
    return web.Response(status=302, headers={"location": f"{request.path}/elsewhere"})


async def failing(request: web.Request) -> web.StreamResponse:
    return web.Response(status=500, text="oops")


async def with_a_page(request: web.Request) -> web.StreamResponse:
    return web.Response(text="<html>", content_type="text/html")


async def hanging_up(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()

"""Who is calling."""

from __future__ import annotations

import json
import time
from base64 import b64encode, urlsafe_b64encode
from types import SimpleNamespace

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.rpc.auth import TOKEN_COOKIE, Authenticator
from apiserver.rpc.errors import ApiError
from tests.rpc.apps import ALICE, LOGIN, SECRET, authenticator, lookup

pytestmark = pytest.mark.anyio


def basic(text: str | bytes) -> dict[str, str]:
    raw = text.encode() if isinstance(text, str) else text
    return {"authorization": "Basic " + b64encode(raw).decode()}


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def cookie(token: str, **headers: str) -> dict[str, str]:
    return {"cookie": f"other=1; {TOKEN_COOKIE}={token}; last=2", "host": "api.test:8008", **headers}


async def refused(headers: dict[str, str]) -> tuple[int, int]:
    with pytest.raises(ApiError) as error:
        await authenticator().authenticate(headers)
    json.dumps(error.value.message).encode()
    error.value.message.encode()
    return error.value.code, error.value.subcode


async def test_an_access_key_says_who_calls() -> None:
    assert await authenticator().authenticate(basic(":".join(LOGIN))) == ALICE
    assert await authenticator().authenticate({"authorization": "bAsIc  " + b64encode(b"AK:sk").decode()}) == ALICE


async def test_a_secret_may_hold_colons() -> None:
    async def odd(key: str, secret: str) -> None:
        assert (key, secret) == ("AK", "a:b:c")

    with pytest.raises(ApiError):
        await Authenticator(SECRET, odd).authenticate(basic("AK:a:b:c"))


async def test_a_token_says_who_calls() -> None:
    token = authenticator().issue(ALICE, 3600)
    assert await authenticator().authenticate(bearer(token)) == ALICE
    assert await authenticator().authenticate({"authorization": f"bearer   {token} "}) == ALICE


async def test_the_cookie_says_who_calls() -> None:
    token = authenticator().issue(ALICE, 3600)
    assert await authenticator().authenticate(cookie(token)) == ALICE
    assert await authenticator().authenticate(cookie(f'"{token}"')) == ALICE


@pytest.mark.parametrize(
    "headers",
    [{}, {"authorization": ""}, {"authorization": "  "}, {"cookie": "a=b"}, {"cookie": ";;=;"},
     {"cookie": f"{TOKEN_COOKIE}="}, {"cookie": f"x{TOKEN_COOKIE}=abc"}],
)  # fmt: skip
async def test_no_credentials_are_401_20(headers: dict[str, str]) -> None:
    assert await refused(headers) == (401, 20)


@pytest.mark.parametrize("value", ["Foo x", "Digest username=a", "AK:sk", "Token abc"])
async def test_another_scheme_is_401_10(value: str) -> None:
    assert await refused({"authorization": value}) == (401, 10)


@pytest.mark.parametrize(
    "value",
    ["AK:wrong", "nobody:sk", "AK", "AK:", ":sk", ":", "", b"\xff\xfe:\xff"],
)
async def test_a_wrong_key_or_secret_is_401_22(value: str | bytes) -> None:
    assert await refused(basic(value)) == (401, 22)


@pytest.mark.parametrize("value", ["Basic", "Basic !!!", "Basic QUs6c2s", "Basic é", "Basic QUs6 c2s="])
async def test_a_malformed_key_is_401_22(value: str) -> None:
    assert await refused({"authorization": value}) == (401, 22)


def unsigned(payload: dict[str, object]) -> str:
    parts = ({"alg": "none", "typ": "JWT"}, payload)
    return ".".join(urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


async def test_a_bad_token_is_401_30() -> None:
    good = authenticator().issue(ALICE, 3600)
    claims = jwt.decode(good, options={"verify_signature": False})
    eternal = {name: value for name, value in claims.items() if name != "exp"}
    rsa_like = jwt.encode(claims, SECRET * 2, algorithm="HS512")
    bad = [
        "",
        "abc.def.ghi",
        "é.é.é",
        good[:-6] + "AAAAAA",
        good + "x",
        authenticator().issue(ALICE, -1),
        Authenticator(SECRET[::-1], lookup).issue(ALICE, 3600),
        jwt.encode(eternal, SECRET, algorithm="HS256"),
        jwt.encode({"exp": claims["exp"]}, SECRET, algorithm="HS256"),
        jwt.encode({"exp": claims["exp"], "identity": {"user": 5}}, SECRET, algorithm="HS256"),
        jwt.encode({"exp": claims["exp"], "identity": []}, SECRET, algorithm="HS256"),
        rsa_like,
        unsigned(claims),
        urlsafe_b64encode(b"[" * 5000).decode() + ".e30.e30",
        urlsafe_b64encode(b'{"alg": ["HS256"]}').decode() + ".e30.e30",
    ]
    for token in bad:
        assert await refused(bearer(token)) == (401, 30), token
        if token:
            assert await refused(cookie(token)) == (401, 30), token
    assert await refused({"authorization": "Bearer"}) == (401, 30)


async def test_a_token_that_was_good_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    auth = authenticator()
    token = auth.issue(ALICE, 3600)
    assert await auth.authenticate(bearer(token)) == ALICE
    later = time.time() + 3601
    monkeypatch.setattr("apiserver.rpc.auth.time", SimpleNamespace(time=lambda: later))
    with pytest.raises(ApiError) as error:
        await auth.authenticate(bearer(token))
    assert (error.value.code, error.value.subcode) == (401, 30)


async def test_a_token_made_by_a_server_whose_clock_is_ahead_is_good() -> None:
    claims = jwt.decode(authenticator().issue(ALICE, 3600), options={"verify_signature": False})
    ahead = jwt.encode({**claims, "iat": claims["iat"] + 300}, SECRET, algorithm="HS256")
    assert await authenticator().authenticate(bearer(ahead)) == ALICE


async def test_a_bad_token_beats_a_good_cookie() -> None:
    good = cookie(authenticator().issue(ALICE, 3600))
    assert await refused({**good, **bearer("abc.def.ghi")}) == (401, 30)
    assert await refused({**good, **basic("AK:wrong")}) == (401, 22)
    assert await refused({**good, "authorization": "Foo x"}) == (401, 10)


def test_a_token_tells_clients_what_the_server_is_without_the_secret() -> None:
    claims = jwt.decode(authenticator().issue(ALICE, 3600), options={"verify_signature": False})
    assert claims.pop("exp") - claims["iat"] == 3600
    assert abs(claims.pop("iat") - time.time()) < 60
    assert claims == {
        "identity": {
            "user": "alice",
            "company": "acme",
            "role": "admin",
            "user_name": "Alice",
            "company_name": "Acme",
            "key": "AK",
        },
        "api_version": "2.34",
        "server_version": "2.3.0",
        "feature_set": "basic",
        "auth_type": "Bearer",
    }


def test_a_short_secret_is_refused_at_start() -> None:
    with pytest.raises(ValueError, match="at least 32 bytes"):
        Authenticator("short", lookup)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://api.test:8008"},
        {"origin": "https://API.test:8008"},
        {"origin": "http://ui.test:8080"},
        {"origin": "http://ui.test:8080", "sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
    ],
)
async def test_the_cookie_counts_for_the_own_pages_and_those_allowed(headers: dict[str, str]) -> None:
    auth = authenticator(allowed_origins=["http://ui.test:8080"])
    assert await auth.authenticate(cookie(auth.issue(ALICE, 3600), **headers)) == ALICE


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.test"},
        {"origin": "http://api.test:8081"},
        {"origin": "http://ui.test:8081"},
        {"origin": "https://ui.test:8080"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "http://[broken"},
        {"origin": "http://evil.test", "host": ""},
        {"origin": "null", "host": ""},
        {"sec-fetch-site": "cross-site"},
    ],
)
async def test_a_foreign_page_cannot_use_the_cookie(headers: dict[str, str]) -> None:
    auth = authenticator(allowed_origins=["http://ui.test:8080"])
    with pytest.raises(ApiError) as error:
        await auth.authenticate({**cookie(auth.issue(ALICE, 3600)), **headers})
    assert (error.value.code, error.value.subcode) == (403, 21)


async def test_an_origin_does_not_matter_to_keys_and_tokens() -> None:
    foreign = {"origin": "http://evil.test", "host": "api.test"}
    assert await authenticator().authenticate({**foreign, **basic("AK:sk")}) == ALICE
    assert await authenticator().authenticate({**foreign, **bearer(authenticator().issue(ALICE, 60))}) == ALICE


latin = st.text(st.characters(max_codepoint=255), max_size=60)


@given(
    st.sampled_from(["authorization", "cookie"]), st.sampled_from(["Basic ", "Bearer ", f"{TOKEN_COOKIE}=", ""]), latin
)
async def test_whatever_header_comes_is_a_clear_error(name: str, start: str, rest: str) -> None:
    assert (await refused({name: start + rest}))[0] == 401


async def test_a_token_ends_with_the_access_key_it_came_from() -> None:
    live = {"AK"}

    async def is_live(key: str) -> bool:
        return key in live

    auth = authenticator(is_live=is_live)
    token = auth.issue(ALICE, 3600)
    assert await auth.authenticate(bearer(token)) == ALICE
    live.clear()
    for headers in (bearer(token), cookie(token)):
        with pytest.raises(ApiError, match="no longer in use"):
            await auth.authenticate(headers)

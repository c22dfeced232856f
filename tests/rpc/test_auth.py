"""Who is calling."""

from __future__ import annotations

import json
import time
from base64 import b64encode, urlsafe_b64encode
from dataclasses import replace

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.common.errors import Refusal, Why
from apiserver.rpc.auth import TOKEN_COOKIE, Authenticator
from apiserver.rpc.call import Identity
from apiserver.rpc.statuses import answer_to
from tests.harness import bearer
from tests.rpc.apps import ALICE, LOGIN, SECRET, authenticator, lookup

pytestmark = pytest.mark.anyio


def basic(text: str | bytes) -> dict[str, str]:
    raw = text.encode() if isinstance(text, str) else text
    return {"authorization": "Basic " + b64encode(raw).decode()}


def cookie(token: str, **headers: str) -> dict[str, str]:
    """As a page of the server's own origin sends it, unless the headers say otherwise."""
    return {"origin": "http://api.test:8008", **bare_cookie(token, **headers)}


def bare_cookie(token: str, **headers: str) -> dict[str, str]:
    headers = {"host": "api.test:8008", "content-type": "application/json", **headers}
    return {"cookie": f"other=1; {TOKEN_COOKIE}={token}; last=2", **headers}


async def whose(headers: dict[str, str], auth: Authenticator | None = None, *, changes: bool = True) -> Identity:
    """Who the headers say, but for the session, which is a token's own."""
    return replace(await (auth or authenticator()).authenticate(headers, changes=changes), session=None, logged_in=None)


async def refused(headers: dict[str, str]) -> tuple[int, int]:
    with pytest.raises(Refusal) as error:
        await authenticator().authenticate(headers)
    json.dumps(error.value.message).encode()
    error.value.message.encode()
    answer = answer_to(error.value)
    return answer.code, answer.subcode


async def test_an_access_key_says_who_calls() -> None:
    assert await authenticator().authenticate(basic(":".join(LOGIN))) == ALICE
    assert await authenticator().authenticate({"authorization": "bAsIc  " + b64encode(b"AK:sk").decode()}) == ALICE


async def test_a_secret_may_hold_colons() -> None:
    async def odd(key: str, secret: str, client: str) -> None:
        assert (key, secret) == ("AK", "a:b:c")

    with pytest.raises(Refusal):
        await Authenticator(SECRET, odd).authenticate(basic("AK:a:b:c"))


async def test_a_token_says_who_calls() -> None:
    token = authenticator().issue(ALICE, 3600)
    assert await whose(bearer(token)) == ALICE
    assert await whose({"authorization": f"bearer   {token} "}) == ALICE


async def test_the_cookie_says_who_calls() -> None:
    token = authenticator().issue(ALICE, 3600)
    assert await whose(cookie(token)) == ALICE
    assert await whose(cookie(f'"{token}"')) == ALICE


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


async def test_a_token_that_was_good_expires() -> None:
    now = [time.time()]
    auth = authenticator(clock=lambda: now[0])
    token = auth.issue(ALICE, 3600)
    assert await whose(bearer(token), auth) == ALICE
    now[0] += 3601
    with pytest.raises(Refusal) as error:
        await auth.authenticate(bearer(token))
    assert error.value.why is Why.BAD_TOKEN


async def test_a_token_made_by_a_server_whose_clock_is_ahead_is_good() -> None:
    claims = jwt.decode(authenticator().issue(ALICE, 3600), options={"verify_signature": False})
    ahead = jwt.encode({**claims, "iat": claims["iat"] + 300}, SECRET, algorithm="HS256")
    assert await whose(bearer(ahead)) == ALICE


async def test_a_bad_token_beats_a_good_cookie() -> None:
    good = cookie(authenticator().issue(ALICE, 3600))
    assert await refused({**good, **bearer("abc.def.ghi")}) == (401, 30)
    assert await refused({**good, **basic("AK:wrong")}) == (401, 22)
    assert await refused({**good, "authorization": "Foo x"}) == (401, 10)


def test_a_token_tells_clients_what_the_server_is_without_the_secret() -> None:
    before = int(time.time())
    claims = jwt.decode(authenticator().issue(ALICE, 3600), options={"verify_signature": False})
    after = time.time()
    assert claims.pop("exp") - claims["iat"] == 3600
    assert before <= claims.pop("iat") <= after
    assert len(claims.pop("session_id")) == 32
    assert before <= claims.pop("auth_time") <= after
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


#: What browsers send of a page's own script. To http:// on other hosts than their own, they leave out Sec-Fetch-*.
FETCH = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}
OWN = [
    FETCH,
    {**FETCH, "sec-fetch-mode": "same-origin"},
    {**FETCH, "origin": "http://api.test:8008"},
    {**FETCH, "sec-fetch-site": "same-site", "origin": "http://ui.test:8080"},
    {"origin": "http://api.test:8008"},
    {"origin": "https://API.test:8008"},
    {"origin": "http://ui.test:8080"},
    {"origin": "http://ui.test:8080", "sec-fetch-site": "cross-site"},
    {"origin": "http://proxied.test", "sec-fetch-site": "same-origin"},
    {"origin": "http://proxied.test", "x-forwarded-host": "proxied.test"},
    {"origin": "http://api.test:9000", "host": "api.test"},  # of a proxy that leaves out the port
    {"sec-fetch-site": "same-origin"},
]
FOREIGN = [
    {"origin": "http://evil.test"},
    {"origin": "http://api.test:8081"},
    {"origin": "http://ui.test:8081"},
    {"origin": "https://ui.test:8080"},
    {"origin": "http://evil-api.test", "host": "api.test"},
    {"origin": "http://api.test.evil.test", "host": "api.test"},
    {"origin": "null"},
    {"origin": ""},
    {"origin": "http://[broken"},
    {"origin": "http://evil.test", "host": ""},
    {"origin": "null", "host": ""},
    {"origin": "http://evil.test", "referer": "http://ui.test:8080/"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "cross-site", "referer": "http://api.test:8008/"},
]
UNKNOWN: list[dict[str, str]] = [
    {},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "none"},
    {"referer": "http://evil.test/"},
    {"referer": "http://[broken"},
    {"referer": ""},
    {"referer": "http://api.test:8008/a?b=c"},
    {"referer": "http://ui.test:8080/projects"},
    {"referer": "http://ui.test:8080/projects", "sec-fetch-site": "cross-site"},
]
#: Of an own page, but not by its script.
PICTURE, LINK = ({**FETCH, "sec-fetch-mode": mode, "sec-fetch-dest": dest}
                 for mode, dest in (("no-cors", "image"), ("navigate", "document")))  # fmt: skip
OTHERWISE: list[tuple[str, dict[str, str]]] = [
    *((method, headers) for method in ("GET", "HEAD") for headers in OWN),
    *(("POST", {"origin": "http://api.test:8008", **headers}) for headers in (PICTURE, LINK)),
    ("POST", {**FETCH, "sec-fetch-mode": "no-cors"}),
    ("POST", {**FETCH, "sec-fetch-dest": "iframe"}),
    *(
        ("POST", {**page, "content-type": kind})
        for page in ({"origin": "http://api.test:8008"}, FETCH)
        for kind in (
            *("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/ping"),
            *("application/json+x", "text/plain; application/json", "application/csp-report"),
        )
    ),
]


async def by_cookie(headers: dict[str, str], method: str = "POST", *, changes: bool) -> Identity:
    auth = authenticator(allowed_origins=["http://ui.test:8080"])
    sent = {**bare_cookie(auth.issue(ALICE, 3600)), **headers}
    return replace(await auth.authenticate(sent, method=method, changes=changes), session=None, logged_in=None)


@pytest.mark.parametrize("headers", OWN)
async def test_the_cookie_counts_for_the_own_pages_and_those_allowed(headers: dict[str, str]) -> None:
    assert await by_cookie(headers, changes=True) == await by_cookie(headers, changes=False) == ALICE


@pytest.mark.test
@pytest.mark.parametrize("headers", FOREIGN)
@pytest.mark.parametrize("changes", [True, False])
async def test_a_foreign_page_cannot_use_the_cookie(headers: dict[str, str], changes: bool) -> None:
    with pytest.raises(Refusal) as error:
        await by_cookie(headers, changes=changes)
    assert error.value.why is Why.FORBIDDEN


@pytest.mark.parametrize("headers", UNKNOWN)
async def test_what_nobody_vouches_for_only_reads(headers: dict[str, str]) -> None:
    assert await by_cookie(headers, changes=False) == ALICE
    with pytest.raises(Refusal) as error:
        await by_cookie(headers, changes=True)
    assert error.value.why is Why.FORBIDDEN


@pytest.mark.test
@pytest.mark.parametrize(("method", "headers"), OTHERWISE)
async def test_the_cookie_changes_nothing_but_by_a_pages_own_script(method: str, headers: dict[str, str]) -> None:
    assert await by_cookie(headers, method, changes=False) == ALICE
    with pytest.raises(Refusal) as error:
        await by_cookie(headers, method, changes=True)
    assert error.value.why is Why.FORBIDDEN


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8", "application/json-lines"])
async def test_the_cookie_changes_something_by_json(kind: str) -> None:
    for method in ("POST", "PUT"):
        assert await by_cookie({**FETCH, "content-type": kind}, method, changes=True) == ALICE


async def test_files_are_sent_as_forms_but_by_a_pages_own_script_too() -> None:
    auth = authenticator()
    form = {**bare_cookie(auth.issue(ALICE, 3600)), "content-type": "multipart/form-data; boundary=x"}
    assert await auth.authenticate({**form, **FETCH}, forms=True)
    for headers in ({}, LINK, {"origin": "http://evil.test"}):
        with pytest.raises(Refusal):
            await auth.authenticate({**form, **headers}, forms=True)


async def test_an_origin_does_not_matter_to_keys_and_tokens() -> None:
    foreign = {"origin": "http://evil.test", "host": "api.test"}
    assert await authenticator().authenticate({**foreign, **basic("AK:sk")}) == ALICE
    assert await whose({**foreign, **bearer(authenticator().issue(ALICE, 60))}) == ALICE


latin = st.text(st.characters(max_codepoint=255), max_size=60)


@given(
    st.sampled_from(["authorization", "cookie"]), st.sampled_from(["Basic ", "Bearer ", f"{TOKEN_COOKIE}=", ""]), latin
)
async def test_whatever_header_comes_is_a_clear_error(name: str, start: str, rest: str) -> None:
    assert (await refused({name: start + rest, "content-type": "application/json", **FETCH}))[0] == 401


async def test_a_token_ends_when_it_is_nobodys_any_more() -> None:
    live = {"AK": ALICE}

    async def current(claimed: Identity) -> Identity | None:
        return live.get(claimed.key or "")

    auth = authenticator(current=current)
    token = auth.issue(ALICE, 3600)
    assert await auth.authenticate(bearer(token)) == ALICE
    live["AK"] = replace(ALICE, role="user")
    assert (await auth.authenticate(bearer(token))).role == "user"
    live.clear()
    for headers in (bearer(token), cookie(token)):
        with pytest.raises(Refusal, match="it has ended"):
            await auth.authenticate(headers)


async def test_a_token_got_by_a_token_is_of_the_same_session() -> None:
    auth = authenticator()
    first, other = [await auth.authenticate(bearer(auth.issue(ALICE, 3600))) for _ in range(2)]
    renewed = await auth.authenticate(bearer(auth.issue(first, 3600)))
    assert first.session
    assert renewed.session == first.session != other.session


@pytest.mark.parametrize("header", ["x-clearml-impersonate-as", "x-trains-impersonate-as"])
async def test_who_may_acts_for_others(header: str) -> None:
    async def become(caller: Identity, user: str) -> Identity | None:
        return replace(caller, user=user, role="user") if user == "bob" else None

    auth = authenticator(become=become)
    assert (await auth.authenticate({**basic("AK:sk"), header: "bob"})).user == "bob"
    for own in ("", "alice"):
        assert await auth.authenticate({**basic("AK:sk"), header: own}) == ALICE
    for one in (auth, authenticator()):
        with pytest.raises(Refusal) as error:
            await one.authenticate({**basic("AK:sk"), header: "carol"})
        assert error.value.why is Why.NOT_TO_IMPERSONATE

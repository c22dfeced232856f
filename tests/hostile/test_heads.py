"""Heads of requests: long, many, and with forged or strange values; of callers that nobody knows."""

from __future__ import annotations

import base64
import json
from functools import partial

import pytest

from tests.hostile.conftest import TOGETHER
from tests.hostile.target import Headers, Target, at_once

#: As much as a head may take, and little less.
LONG_TEXT = "x" * 60_000
MANY = 100


def encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def token(header: bytes, claims: bytes) -> Headers:
    """A token with a signature that is none."""
    return {"Authorization": f"Bearer {encoded(header)}.{encoded(claims)}.{encoded(b'x' * 32)}"}


def basic(credentials: bytes) -> Headers:
    return {"Authorization": "Basic " + base64.b64encode(credentials).decode()}


HS256 = b'{"alg":"HS256","typ":"JWT"}'
DEEP = b"[" * 20_000 + b"]" * 20_000

HEADS: dict[str, Headers] = {
    "a long cookie": {"Cookie": f"clearml_token_basic={LONG_TEXT}"},
    "many cookies": {"Cookie": "; ".join(["clearml_token_basic=a.b.c"] * 2000)},
    "quotes in cookies": {"Cookie": 'clearml_token_basic="' + '\\"' * 29_000},
    "a long scheme": {"Authorization": LONG_TEXT},
    "a long key": basic(b"x" * 40_000),
    "many colons": basic(b":" * 40_000),
    "no base64": {"Authorization": "Basic " + "=" * 50_000},
    "no UTF-8": basic(b"\xff:\xfe" * 10_000),
    "a long token": {"Authorization": f"Bearer {LONG_TEXT}"},
    "points": {"Authorization": "Bearer " + "." * 50_000},
    "a token without algorithm": token(b'{"alg":"none","typ":"JWT"}', b'{"exp":9999999999}'),
    "a token of another algorithm": token(b'{"alg":"RS256"}', b"{}"),
    "a token with deep claims": token(HS256, DEEP),
    "a token with a deep header": token(DEEP, b"{}"),
    "a token with a long number": token(HS256, b'{"exp":' + b"9" * 40_000 + b"}"),
    "a token that is never over": token(HS256, b'{"exp":1e999}'),
    "a token with many claims": token(HS256, json.dumps({str(n): n for n in range(2500)}).encode()),
    "a compressed token": token(b'{"alg":"HS256","zip":"DEF","crit":["zip"]}', b"x"),
    "a key of somebody else": token(b'{"alg":"HS256","jku":"http://127.0.0.1:1/","kid":"../../x"}', b"{}"),
    "many codings": {"Accept-Encoding": ",".join(["gzip;q=0.1"] * 5000)},
    "a strange weight": {"Accept-Encoding": "gzip;q=" + "9" * 50_000},
    "a long coding": {"Content-Encoding": LONG_TEXT},
    "a long length": {"Content-Length": "9" * 5000},
    "a negative length": {"Content-Length": "-1"},
    "two lengths": {"content-length": "0", "Content-Length": "10"},
    "both lengths": {"Transfer-Encoding": "chunked", "Content-Length": "10"},
    "transfers": {"Transfer-Encoding": ",".join(["chunked"] * 3000)},
    "a long impersonation": {"X-ClearML-Impersonate-As": LONG_TEXT},
    "a long client": {"X-ClearML-Client": f"clearml-{LONG_TEXT}"},
    "a long worker": {"X-ClearML-Worker": LONG_TEXT},
    "many proxies": {"X-Forwarded-For": ",".join(["127.0.0.1"] * 5000)},
    "proxies that are none": {"X-Forwarded-For": ",".join(["[::1", "::ffff:1.2.3.4", "%", "999.9.9.9"] * 900)},
    "an origin that is none": {"Origin": "http://[" + ":" * 50_000, "Referer": "http://]" + "[" * 5000},
    "a long origin": {"Origin": "http://" + "a." * 25_000},
    "many headers": {f"x-{n}": "x" for n in range(3000)},
    "many small headers": {f"{n}": "" for n in range(5000)},
    "an upgrade": {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "x"},
    "expectations": {"Expect": "100-continue," * 3000},
    "ranges": {"Range": "bytes=" + ",".join(f"{n}-" for n in range(9000))},
}

PATHS: dict[str, str] = {
    "a long path": "/" + LONG_TEXT,
    "slashes": "/" * 60_000,
    "points": "/.." * 20_000,
    "escapes": "/%2e%2e%2f" * 6000,
    "escaped NULs": "/tasks.get_all%00" * 3000,
    "a long version": "/v" + "9" * 50_000 + "." + "9" * 5000 + "/debug.ping",
    "many versions": "/v2.1" * 10_000 + "/debug.ping",
    "many fields": "/auth.login?" + "&".join(f"f{n}=1" for n in range(6000)),
    "the same field": "/auth.login?" + "&".join(["task=1"] * 8000),
    "the same field 1,000 times": "/auth.login?" + "&".join(["task=1"] * 999),
    "a long field": f"/auth.login?task={LONG_TEXT}",
    "empty fields": "/auth.login?" + "&" * 50_000,
    "escapes in a query": "/auth.login?task=" + "%41" * 19_000,
    "no UTF-8 in a query": "/auth.login?task=" + "%ff" * 19_000,
    "semicolons": "/auth.login?" + ";a=1" * 10_000,
    "a login page's page": "/login.supported_modes?state=" + LONG_TEXT,
    "ModelArts": "/v2/p/training-jobs/j/metrics/" + "x/" * 25_000,
    "Baseten": "/v1/training_projects/" + "x/" * 25_000,
    "PAI": "/api/v1/jobs/x/metrics?" + "&".join(f"MetricType={n}" for n in range(3000)),
    "a file": "/files/" + "a/" * 29_000,
    "OpenAPI": "/openapi.json",
    "health": "/health",
    "no path": "*",
}


@pytest.mark.parametrize("path", ["/auth.login", "/tasks.get_all", "/files/x", "/v2/p/training-jobs/j/metrics/t"])
def test_heads(target: Target, path: str) -> None:
    with target.attacked():
        for name, headers in HEADS.items():
            send = partial(target.send, path, b"", headers)
            statuses = {send(), *at_once(TOGETHER, send)}
            assert not statuses & {500, 200} or path == "/auth.login", (name, statuses)


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_paths(target: Target, method: str) -> None:
    with target.attacked():
        for name, path in PATHS.items():
            send = partial(target.send, path, method=method)
            assert 500 not in {send(), *at_once(TOGETHER, send)}, name


def test_heads_of_files(target: Target) -> None:
    with target.attacked():
        for name, headers in HEADS.items():
            assert target.send("/a/file", b"", headers, method="GET", files=True) in {0, 400, 401, 403, 413, 431}, name


@pytest.mark.parametrize("name", HEADS)
def test_heads_of_users(target: Target, name: str) -> None:
    headers = {key: value for key, value in HEADS[name].items() if key != "Authorization"}
    with target.attacked():
        assert target.send("/tasks.get_all", b"", headers, known=True) != 500


def test_heads_a_thousand_times(target: Target) -> None:
    with target.attacked():
        for name in ("a token with many claims", "a long key", "many codings"):
            send = partial(target.send, "/tasks.get_all", b"", HEADS[name])
            for _ in range(MANY):
                assert send() in {400, 401, 429}


def test_the_worst_heads_elsewhere(elsewhere: Target) -> None:
    with elsewhere.attacked():
        for name, headers in HEADS.items():
            assert elsewhere.send("/tasks.get_all", b"", headers) not in {200, 500}, name
        for name, path in PATHS.items():
            assert elsewhere.send(path, method="GET") != 500, name


def test_no_head_is_waited_for_long(target: Target) -> None:
    """What is no HTTP is told so, or nothing; it is not kept."""
    nonsense = [b"\x16\x03\x01\x02\x00\x01" * 100, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET\r\n\r\n", b"\0" * 2**16]
    nonsense += [b"GET / HTTP/9.9\r\n\r\n", b"X" * 10_000 + b" / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\n: x\r\n\r\n"]
    with target.attacked():
        for text in nonsense:
            answer = target.send_raw(text)
            assert not answer or answer[9:12] in (b"400", b"404", b"405", b"413", b"414", b"431", b"505"), text[:20]

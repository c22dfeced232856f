"""Bodies of metrics that take long to read, of strangers and of users."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import partial

import pytest

from tests.hostile.conftest import LONG, TOGETHER
from tests.hostile.target import OF_STRANGERS, OF_USERS, Target, at_once
from tests.otlp.written import double, fixed, message, metric, pairs, request

LARGEST = 16 * 2**20
_TASK = {"clearml.task.id": "nobody"}
_HUGE = "x" * (LARGEST // 2)


def _points(count: int, point: bytes, **resource: str) -> bytes:
    return request({**_TASK, **resource}, message(1, b"m") + message(5, message(1, point) * count))


#: Bodies in Protocol Buffers by what is odd about them.
PROTOBUF: dict[str, Callable[[], bytes]] = {
    "numbers": lambda: b"\x18\x01" * (LARGEST // 2),
    "empty resources": lambda: b"\x0a\x00" * (LARGEST // 2),
    "empty metrics": lambda: message(1, message(2, b"\x12\x00" * (LARGEST // 2 - 10))),
    "empty points": lambda: _points(LARGEST // 2 - 40, b""),
    "small points": lambda: _points(490_000, double(4, 1)),
    "many series": lambda: request(_TASK, *[metric(f"m{n}", 5, double(4, 1)) for n in range(200_000)]),
    "many attributes": lambda: _points(1, pairs(7, {"a": 1}) * (LARGEST // 11)),
    "many quantiles": lambda: request(_TASK, metric("m", 11, message(6, double(1, 0.5)) * (LARGEST // 12))),
    "a long host": lambda: _points(300_000, double(4, 1), **{"host.name": _HUGE}),
    "a long task": lambda: _points(300_000, double(4, 1), **{"clearml.task.id": _HUGE}),
    "a long attribute": lambda: _points(1, pairs(7, {"a": _HUGE + "="}) + double(4, 1)),
    "steps of one series": lambda: _points(200_000, pairs(7, {"step": 1}) + double(4, 1) + fixed(3, 1)),
    "a length beyond the end": lambda: b"\x0a\xff\xff\xff\xff\x7f" + bytes(LARGEST // 2),
    "a bomb": lambda: bytes(20 * LARGEST),
}
_POINTS = b'{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"gauge":{"dataPoints":[%b]}}]}]}]}'
JSON: dict[str, Callable[[], bytes]] = {
    "points": lambda: _POINTS % (b"{}," * (LARGEST // 3 - 40) + b"{}"),
    "some points": lambda: _POINTS % (b'{"asInt":1},' * 80_000 + b"{}"),
    "lists": lambda: b'{"resourceMetrics":' + b"[" * (LARGEST // 2) + b"]" * (LARGEST // 2) + b"}",
    "digits": lambda: _POINTS % b'{"asInt":"%b"}' % (b"9" * (LARGEST // 2)),
}

#: What is tried in short, and by how many users at once: what takes longest, and what is largest.
_WORST = ("small points", "a bomb")
_USERS = TOGETHER if LONG else 2


def attack(target: Target, body: bytes, form: str) -> None:
    headers = {"Content-Encoding": "gzip", "Content-Type": f"application/{form}"}
    sent = gzip.compress(body, 1)
    with target.attacked(OF_USERS):
        send = partial(target.send, "/v1/metrics", sent, headers, known=True)
        assert set(at_once(_USERS, send)) <= {0, 200, 400, 413, 429, 503}
    with target.attacked(OF_STRANGERS):
        send = partial(target.send, "/v1/metrics", sent, headers)
        assert set(at_once(TOGETHER, send)) <= {0, 401, 413}


@pytest.mark.parametrize("name", PROTOBUF if LONG else _WORST)
def test_protobuf(target: Target, name: str) -> None:
    attack(target, PROTOBUF[name](), "x-protobuf")


@pytest.mark.parametrize("name", JSON if LONG else ["points"])
def test_json(target: Target, name: str) -> None:
    attack(target, JSON[name](), "json")

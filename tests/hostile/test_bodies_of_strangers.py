"""Bodies that cost much to read, of callers that nobody knows: JSON that is deep, wide or none, and bombs."""

from __future__ import annotations

from functools import partial

import pytest

from tests.hostile.bodies import ENCODED, JSON, compressed, encoded
from tests.hostile.conftest import LONG, TOGETHER
from tests.hostile.target import Target, at_once

FOR_ANYBODY = ("/auth.login", "/debug.ping", "/login.supported_modes")
FOR_USERS = ("/events.add_batch", "/tasks.get_all_ex", "/events.add")
GZIP = {"Content-Encoding": "gzip"}
#: 0: the connection was closed while the body was still being sent.
ANSWERS = {0, 200, 400, 401, 413, 415}


def attack(target: Target, body: bytes, coding: str, plain: bytes = b"") -> None:
    """Send a body twice, then by many at once, to endpoints for anybody and to others; and what it is, inflated."""
    headers = {"Content-Encoding": coding}
    with target.attacked():
        for path in FOR_ANYBODY[: None if LONG else 1]:
            send = partial(target.send, path, body, headers)
            assert {send(), send(), *at_once(TOGETHER, send)} <= ANSWERS
        for path in FOR_USERS[: None if LONG else 1]:
            refused = {0, 401, 413} | ({400} if target.through_proxy else set())  # nginx takes no very long header
            assert target.send(path, body, headers) in refused
        if plain:
            assert target.send(FOR_ANYBODY[0], plain) in ANSWERS


@pytest.mark.parametrize("name", JSON)
def test_json(target: Target, name: str) -> None:
    attack(target, compressed(name), "gzip", JSON[name]())


@pytest.mark.parametrize("name", ENCODED)
def test_encodings(target: Target, name: str) -> None:
    attack(target, encoded(name), ENCODED[name][0])


@pytest.mark.parametrize("name", ["900 deep, 16,000 ones, NaN", "ones and NaN", "empty lists"])
def test_the_worst_json_elsewhere(elsewhere: Target, name: str) -> None:
    attack(elsewhere, compressed(name), "gzip", JSON[name]())


@pytest.mark.parametrize("name", ["zstd bomb", "empty gzip members"])
def test_the_worst_encodings_elsewhere(elsewhere: Target, name: str) -> None:
    attack(elsewhere, encoded(name), ENCODED[name][0])

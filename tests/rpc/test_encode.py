"""Large answers, encoded in pieces, are the JSON that they would be in one piece."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pytest

from apiserver.common.answers import AnswerTooLarge
from apiserver.rpc.encode import MOST_JSON, encode, encode_many, size_of

pytestmark = pytest.mark.anyio

FEW: dict[str, Any] = {"a": 1, "b": [], "c": {}, "d": {"e": {"f": {"g": [1, 2]}}}, 'na"me': [float("nan"), "ü"]}


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 32, 33, 2000])
async def test_pieces_are_what_the_whole_is(count: int) -> None:
    some = [
        {"n": n, "x": np.array([n, 0.5]), "y": orjson.Fragment(b"[1,2]"), "z": [n] * (n % 40)} for n in range(count)
    ]
    answer = {**FEW, "list": some, "nested": {"m": {f"v{n}": item for n, item in enumerate(some)}}}
    for json in (
        await encode_many(answer, 10_000),
        await encode_many(answer, 10_000, entries=16),
        await encode_many(answer),
    ):
        assert (json if isinstance(json, bytes) else b"".join(json)) == encode(answer)
        assert size_of(json) == len(encode(answer))


async def test_numbers_that_json_does_not_have_are_null() -> None:
    value = {"y": [float("nan"), float("inf"), 1.5], "z": np.array([np.nan, -np.inf, 2.0])}
    assert orjson.loads(encode(value)) == {"y": [None, None, 1.5], "z": [None, None, 2.0]}


@pytest.mark.test
async def test_a_text_that_is_answered_very_often_is_too_much() -> None:
    text = "x" * (MOST_JSON // 1000)
    await encode_many({"list": [text] * 900}, 10_000)
    with pytest.raises(AnswerTooLarge):
        await encode_many({"list": [text] * 1100}, 10_000)


async def test_what_is_no_json_is_refused_in_pieces_too() -> None:
    with pytest.raises(TypeError):
        await encode_many({"list": [object()] * 2000})

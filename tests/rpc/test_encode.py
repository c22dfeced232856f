"""Large answers, encoded in pieces, are the JSON that they would be in one piece."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pytest

from apiserver.rpc.encode import encode, encode_many

pytestmark = pytest.mark.anyio

FEW: dict[str, Any] = {"a": 1, "b": [], "c": {}, "d": {"e": {"f": {"g": [1, 2]}}}, 'na"me': [float("nan"), "ü"]}


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 32, 33, 2000])
async def test_pieces_are_what_the_whole_is(count: int) -> None:
    some = [
        {"n": n, "x": np.array([n, 0.5]), "y": orjson.Fragment(b"[1,2]"), "z": [n] * (n % 40)} for n in range(count)
    ]
    answer = {**FEW, "list": some, "nested": {"m": {f"v{n}": item for n, item in enumerate(some)}}}
    assert await encode_many(answer, 10_000) == encode(answer)
    assert await encode_many(answer) == encode(answer)


async def test_what_is_no_json_is_refused_in_pieces_too() -> None:
    with pytest.raises(TypeError):
        await encode_many({"list": [object()] * 2000})

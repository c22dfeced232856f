"""What documents take in memory, as it is counted while they are read."""

from __future__ import annotations

import sys
from typing import Any

import orjson
import pytest

from apiserver.stores.documents.sqlite.reading import Documents

MEGABYTE = 10**6


def counted(*documents: dict[str, Any]) -> int:
    """Bytes that are counted, at the end, for documents that are read."""
    told: list[int] = []
    made = Documents([], None, told.append)
    assert made.of([(orjson.dumps(document),) for document in documents]) == list(documents)
    return sum(told)


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("x" * MEGABYTE, MEGABYTE),
        ("é" * MEGABYTE, 3 * MEGABYTE),
        ("中" * MEGABYTE, 5 * MEGABYTE),
        ("x" * MEGABYTE + "😀", 5 * MEGABYTE),
        ("\x01" * MEGABYTE, 6 * MEGABYTE),
    ],
)
def test_a_text_counts_as_what_it_takes_decoded_and_as_json(text: str, least: int) -> None:
    assert least <= counted({"id": "a", "text": text}) <= 2 * least


@pytest.mark.test
@pytest.mark.parametrize("count", [1000, 100_000])
@pytest.mark.parametrize("value", [[], {}])
def test_small_values_count_as_what_they_take(value: Any, count: int) -> None:
    assert counted({"id": "a", "values": [value] * count}) >= count * (sys.getsizeof(value) * 4 // 5)


def test_a_row_is_counted_before_it_is_decoded() -> None:
    told: list[int] = []
    Documents([], None, told.append).of([(orjson.dumps({"id": "x" * MEGABYTE + "😀"}),)])
    assert told[0] >= 4 * MEGABYTE
    assert told[1] == -told[0]

"""How a walk over many documents asks for them: each comes once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from apiserver.stores.events.elasticsearch import paging
from apiserver.stores.events.elasticsearch.bounds import BOUNDS
from apiserver.stores.events.elasticsearch.cluster import Cluster

pytestmark = pytest.mark.anyio

WINDOW = 10


class Numbers:
    """A cluster whose documents are numbers."""

    bounds = BOUNDS

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = numbers

    async def searches(self, index: str, bodies: Sequence[dict[str, Any]], *, routing: str) -> list[dict[str, Any]]:
        small, _ = bodies
        (after,) = small.get("search_after", [-1])
        ahead = [number for number in self.numbers if after < number]
        hits = [{"sort": [number], "fields": {}} for number in ahead[: small["size"]]]
        return [{"hits": {"hits": hits}}, {"hits": {"hits": []}}]


async def walk(cluster: Numbers, limit: int = paging.ALL) -> list[int]:
    everything: dict[str, Any] = {"match_all": {}}
    pages = paging.texts(
        cast(Cluster, cluster),
        *("index", "routing", everything, [{"number": "asc"}]),
        fields=[],
        stored=[],
        limit=limit,
        window=WINDOW,
    )
    return [hit["sort"][0] async for page in pages for hit in page]


@pytest.mark.parametrize(
    "numbers",
    [
        [],
        [7],
        range(WINDOW),
        range(0, 9000, 9),
        [*range(30), *range(10**6, 10**6 + 30), 10**9, *range(2**63 - 25, 2**63 - 1)],
        [n**3 for n in range(200)],
    ],
    ids=["none", "one", "a window", "even", "gaps", "ever wider"],
)
async def test_each_document_comes_once(numbers: Sequence[int]) -> None:
    assert await walk(Numbers(numbers)) == [*numbers]
    assert await walk(Numbers(numbers), 25) == [*numbers][:25]

"""Aggregations over many series: which are asked for together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from apiserver.events.model import JsonObject
from apiserver.stores.events.elasticsearch import aggregating
from apiserver.stores.events.elasticsearch.aggregating import SeriesAggs, aggregate
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.series import Series

pytestmark = pytest.mark.anyio


class _Asked:
    """A cluster that finds nothing, and notes how many searches each request has."""

    def __init__(self) -> None:
        self.requests: list[int] = []

    async def searches(self, index: str, bodies: Sequence[JsonObject], *, routing: str) -> list[JsonObject]:
        self.requests.append(len(bodies))
        return [{"hits": {"total": {"value": 0}}} for _ in bodies]


async def test_an_answer_has_a_bounded_number_of_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregating, "BUCKETS_AN_ANSWER", 10)
    asked: Any = _Asked()
    sizes = enumerate((4, 6, 1, 20, 3, 3))
    wanted = [SeriesAggs(Series("m", str(n), str(n), 3000), {}, buckets) for n, buckets in sizes]
    assert await aggregate(cast(Cluster, asked), "index", "owner", wanted) == {}
    assert asked.requests == [2, 1, 1, 2]
    assert await aggregate(cast(Cluster, asked), "index", "owner", []) == {}

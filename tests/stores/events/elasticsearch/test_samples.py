"""The newest samples of many series: how much is asked for at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

import pytest

from apiserver.events.model import EventType, JsonObject, Owner
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.elasticsearch.bounds import ElasticsearchBounds
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.samples import Samples

pytestmark = pytest.mark.anyio


class _Asked:
    """A cluster with series that have so many samples each. It notes how many series each search of a request has."""

    prefix = "events"
    bounds = ElasticsearchBounds(samples_a_search=20, iterations_an_answer=20)

    def __init__(self, counts: Sequence[int]) -> None:
        self.counts = counts
        self.requests: list[list[int]] = []

    async def composite(self, *_: Any, **__: Any) -> AsyncIterator[JsonObject]:
        for number, count in enumerate(self.counts):
            yield {"key": {"metric": f"{number:02}", "variant": ""}, "doc_count": count}

    async def searches(self, index: str, bodies: Sequence[JsonObject], *, routing: str) -> list[JsonObject]:
        if "aggs" in bodies[0]:
            self.requests.append([body["aggs"]["series"]["terms"]["size"] for body in bodies])
        return [{"hits": {"hits": []}} for _ in bodies]


async def test_short_series_share_searches_and_answers_are_bounded() -> None:
    asked = _Asked([2, 6, 7, 8, 50, 1, 6, 6])
    wanted = SeriesQuery(Owner("company", "task"), EventType.PLOT)
    assert await Samples(cast(Cluster, asked), wanted).latest(4, None) == []
    # those with up to four samples are asked for as a whole
    assert asked.requests == [[2, 1, 1], [2]]

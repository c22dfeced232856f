"""events.get_task_log with search, levels and workers."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.reading.log_search import SearchBounds
from apiserver.server.bounds import Bounds
from apiserver.services.bounds import CallBounds
from tests.harness import Api
from tests.services.events.conftest import Add
from tests.services.events.test_read import NOW, event, fill_log

pytestmark = pytest.mark.anyio

LOG = "events.get_task_log"


async def some_lines(add: Add, task: str) -> None:
    await add(
        event("log", task, 0, msg="starting", level="info"),
        event("log", task, 1, msg="loss: 0.5", level="info", metric="stdout"),
        event("log", task, 2, msg="Loss: nan", level="warning", metric="stdout"),
        {**event("log", task, 3, msg="RuntimeError: CUDA\nout of memory", level="error"), "worker": "gpu 2"},
    )


@pytest.mark.test
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"search": {"text": "loss"}}, [2, 1]),
        ({"search": {"text": "loss", "any_case": False}}, [1]),
        ({"search": {"text": "."}}, [1]),
        ({"search": {"regex": r"loss: \d"}}, [1]),
        ({"search": {"regex": "^L", "any_case": False}}, [2]),
        ({"search": {"regex": "(?m)^OUT"}}, [3]),
        ({"levels": ["warning", "error"]}, [3, 2]),
        ({"workers": ["w"]}, [2, 1, 0]),
        ({"workers": ["gpu 2"], "levels": ["info"]}, []),
        ({"levels": ["info"], "metrics": [{"metric": "stdout"}]}, [1]),
        ({"levels": ["info"], "order": "asc"}, [0, 1]),
        ({"search": {"text": "l"}, "navigate_earlier": False}, [1, 2]),
        ({"levels": ["info"], "from_timestamp": NOW + 1000}, [0]),
        ({"levels": ["info"], "from_timestamp": NOW, "navigate_earlier": False}, [1]),
        ({"levels": ["info"], "from_timestamp": 1e300}, [1, 0]),
        ({"levels": ["info"], "from_timestamp": -1e300}, []),
        ({"levels": ["info"], "from_timestamp": 1e300, "navigate_earlier": False}, []),
        ({"levels": ["info"], "from_timestamp": -1e300, "navigate_earlier": False}, [0, 1]),
    ],
)
async def test_only_lines_that_match_are_answered(
    api: Api, add: Add, task: str, fields: dict[str, Any], expected: list[int]
) -> None:
    await some_lines(add, task)
    page = await api.call(LOG, {"task": task, **fields})
    assert [one["iter"] for one in page["events"]] == expected
    assert (page["returned"], page["total"], page["searched_all"]) == (len(expected), None, True)


@pytest.mark.test
@pytest.mark.parametrize("merged", [True, False])
@pytest.mark.parametrize("filters", [{}, {"levels": ["info", "warning", "error"]}, {"search": {"regex": "."}}])
async def test_a_walk_may_begin_at_any_time(
    api: Api, add: Add, task: str, filters: dict[str, Any], merged: bool
) -> None:
    await some_lines(add, task)
    if merged:
        await api.backend.events.merge()  # type: ignore[attr-defined]
    for far in (2**63, 2**63 - 1, 9.3e18, 10**30, 1e300):
        for timestamp in (far, -far):
            for earlier in (True, False):
                request = {"task": task, "from_timestamp": timestamp, "navigate_earlier": earlier, **filters}
                count = 4 if earlier == (timestamp > 0) else 0
                assert (await api.call(LOG, request))["returned"] == count, request


async def test_empty_filters_are_none(api: Api, add: Add, task: str) -> None:
    await some_lines(add, task)
    page = await api.call(LOG, {"task": task, "search": None, "levels": [], "workers": []})
    assert (page["total"], page["returned"]) == (4, 4)
    assert "scroll_id" not in page


@pytest.mark.bounds(Bounds(calls=CallBounds(search=SearchBounds(page=10, seconds=0))))
async def test_a_search_goes_on_by_its_scroll_id(api: Api, add: Add, task: str) -> None:
    await fill_log(add, task, 95)
    request: dict[str, Any] = {"task": task, "search": {"regex": "[05]$"}, "batch_size": 3}
    pages = [await api.call(LOG, request)]
    while not pages[-1]["searched_all"]:
        request["scroll_id"] = pages[-1]["scroll_id"]
        pages.append(await api.call(LOG, request))
    assert [one["iter"] for page in pages for one in page["events"]] == list(range(90, -1, -5))
    assert len(pages) == 10
    for fields in ({"search": {"regex": "0$"}}, {"navigate_earlier": False}, {"scroll_id": "nope"}):
        meta = (await api.call(LOG, {**request, **fields}, expect=400))["meta"]
        assert meta["result_subcode"] == 1104


async def test_nothing_to_search(api: Api, task: str) -> None:
    page = await api.call(LOG, {"task": task, "levels": ["info"]})
    assert (page["events"], page["scroll_id"], page["searched_all"]) == ([], None, True)
    assert (await api.call(LOG, {"task": "nope", "levels": ["info"]}, expect=400))["meta"]["result_subcode"] == 101


@pytest.mark.test
@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"search": {}}, "search"),
        ({"search": {"text": "a", "regex": "b"}}, "search"),
        ({"search": {"text": ""}}, "text"),
        ({"search": {"regex": "("}}, "regex"),
        ({"search": {"regex": r"(a)\1"}}, "regex"),
        ({"search": {"regex": "(a{999}){999}"}}, "regex"),
        ({"search": {"regex": "x" * 3000}}, "regex"),
        ({"search": "text"}, "search"),
        ({"levels": ["loud"]}, "levels"),
        ({"levels": "info"}, "levels"),
        ({"workers": [{}]}, "workers"),
    ],
)
async def test_what_cannot_be_searched_for_is_named(api: Api, task: str, fields: dict[str, Any], field: str) -> None:
    meta = (await api.call(LOG, {"task": task, **fields}, expect=400))["meta"]
    assert meta["result_subcode"] == 12
    assert field in meta["result_msg"]
    assert field in meta["error_data"]["field"]

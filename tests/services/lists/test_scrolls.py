"""Scrolling through lists, through the whole server."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from apiserver.services.lists import scrolls
from apiserver.services.lists.expiring_ids import oldest_id
from apiserver.stores.documents.base import DocumentStoreBusy
from tests.harness import Api

pytestmark = pytest.mark.anyio

QUERY = {"order_by": ["name"], "size": 2}


async def make(api: Api, count: int) -> None:
    for number in range(count):
        await api.call("tasks.create", {"name": f"task {number}", "type": "training"})


async def page(api: Api, scroll_id: Any = None, **request: Any) -> tuple[str, list[str]]:
    """The scroll id, and the last letters of the names, of the page that comes next."""
    answer = await api.call("tasks.get_all_ex", {**QUERY, "scroll_id": scroll_id, **request})
    return answer["scroll_id"], [task["name"][-1] for task in answer["tasks"]]


async def test_the_id_stays_the_same_to_the_end_and_past_it(api: Api) -> None:
    await make(api, 3)
    scroll, first = await page(api)
    assert first == ["0", "1"]
    assert await page(api, scroll) == (scroll, ["2"])
    assert await page(api, scroll) == (scroll, [])
    await make(api, 1)  # a fourth one, "task 0" once more: it moves others along, as it would in pages
    assert await page(api, scroll) == (scroll, ["2"])


async def test_a_refresh_answers_all_that_was_seen_once_more(api: Api) -> None:
    await make(api, 5)
    scroll, _ = await page(api, refresh_scroll=True)
    await page(api, scroll)
    assert await page(api, scroll, refresh_scroll=True) == (scroll, ["0", "1", "2", "3"])
    assert await page(api, scroll) == (scroll, ["4"])


@pytest.mark.parametrize("unknown", ["x", "0123456789abcdef-2", "é/."])
async def test_an_id_that_is_not_known_begins_anew(api: Api, unknown: str) -> None:
    await make(api, 3)
    scroll, first = await page(api, unknown)
    assert scroll != unknown
    assert first == ["0", "1"]
    assert await page(api, scroll) == (scroll, ["2"])


async def test_so_does_one_of_another_query(api: Api) -> None:
    await make(api, 3)
    scroll, _ = await page(api)
    other, found = await page(api, scroll, order_by=["-name"])
    assert other != scroll
    assert found == ["2", "1"]


@pytest.mark.own_api
async def test_so_does_one_that_is_too_old(api: Api) -> None:
    await make(api, 3)
    scroll, first = await page(api)
    documents, old = api.backend.documents, f"{oldest_id(scrolls.KEPT_SECONDS + 1)}{uuid4().hex}"
    [kept] = await documents.find(scrolls.SCROLLS, {"id": scroll})
    await documents.insert(scrolls.SCROLLS, [{**kept, "id": old}])
    assert await page(api, old) == (old, ["2"])
    await page(api)  # as a new one begins
    other, found = await page(api, old)
    assert other != old
    assert found == first == ["0", "1"]


@pytest.mark.own_api
async def test_lists_are_answered_while_nothing_can_be_written(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    await make(api, 3)

    async def busy(*_: Any, **__: Any) -> None:
        raise DocumentStoreBusy("no space left")

    monkeypatch.setattr(type(api.backend.documents), "insert", busy)
    assert (await page(api))[1] == ["0", "1"]

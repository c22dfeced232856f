"""Calls for many things at once: others are answered meanwhile."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from apiserver.stores.documents.query import Document, FindQuery
from tests.harness import Api

pytestmark = pytest.mark.anyio


@pytest.mark.test
async def test_a_call_for_many_things_lets_others_have_their_turn(api: Api) -> None:
    done = asyncio.Event()
    turns = 0

    async def other() -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1
            await asyncio.sleep(0)

    others = asyncio.create_task(other())
    answer = await api.call("tasks.delete_many", {"ids": [uuid4().hex for _ in range(1000)]})
    done.set()
    await others
    assert len(answer["failed"]) == 1000
    assert turns > 100


@pytest.mark.test
@pytest.mark.own_api
async def test_what_is_not_there_is_not_looked_for_one_by_one(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    search = api.backend.documents.search

    async def noted(collection: str, query: FindQuery) -> list[Document]:
        looks.append(collection)
        return await search(collection, query)

    monkeypatch.setattr(api.backend.documents, "search", noted)
    task = (await api.call("tasks.create", {"name": "t", "type": "training"}))["id"]
    for ids in ([], [task]):
        looks.clear()
        answer = await api.call("tasks.reset_many", {"ids": [*(uuid4().hex for _ in range(500)), *ids]})
        assert (len(answer["succeeded"]), len(answer["failed"])) == (len(ids), 500)
        assert answer["failed"][0]["error"]["codes"] == [400, 101]
        assert looks.count("tasks") < 50


@pytest.mark.own_api
async def test_unknown_ids_are_named_but_not_all_of_many(api: Api) -> None:
    ids = [f"unknown {n}" for n in range(100)]
    answer = await api.call("tasks.make_public", {"ids": ids}, expect=400)
    message = answer["meta"]["result_msg"]
    assert "ids=(unknown 0, unknown 1, " in message
    assert message.endswith("unknown 19, and 80 more)")

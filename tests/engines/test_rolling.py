"""Servers on engines are replaced one after the other by those of this release, under load: nothing is lost or doubled.

The releases before are commits of this repository. Where they are not there, as in a shallow clone, this is skipped.
`make check` takes one, and `make longer` the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from apiserver.events.changes import ChangesQuery
from apiserver.events.model import Owner
from apiserver.stores.events.elasticsearch.address import elasticsearch_address
from apiserver.stores.events.elasticsearch.blocks import ElasticsearchBlocks
from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore
from tests.harness import Served, served, wait_until
from tests.longer import beyond
from tests.releases import unpacked
from tests.robustness.writers import Writer, assert_stored, is_stored, new_task, writing

#: A release that keeps blocks, and knows of no deletion up to a cursor.
WITH_BLOCKS = "6ca588a"
#: What releases before did otherwise.
BEFORE = {
    WITH_BLOCKS: "keeps the same, but knows no file with formats",
    "b392fa2": "keeps a document for each point and line",
}
#: Batches that each writer is waited for.
BATCHES = 3


@pytest.fixture(scope="module", params=beyond([WITH_BLOCKS], BEFORE))
def tree(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of a release before. Python compiles them once, for the servers of all tests."""
    return unpacked(request.param, tmp_path_factory.mktemp("before") / "tree")


def wait_for(writers: Sequence[Writer]) -> None:
    """Return when each of them was acknowledged some more batches."""
    goals = [(writer, writer.acknowledged + BATCHES) for writer in writers]
    wait_until(lambda: all(writer.acknowledged >= goal for writer, goal in goals))


def test_servers_are_replaced_under_load(tree: Path, tmp_path: Path, engines: dict[str, Any]) -> None:
    with (
        served(tmp_path / "one", tree=tree, **engines) as one,
        served(tmp_path / "other", tree=tree, **engines) as other,
    ):
        tasks = [new_task(one), new_task(other)]
        every = {
            server.port: [Writer(server, task, f"{server.port} {n}", pause=0.03) for n, task in enumerate(tasks)]
            for server in (one, other)
        }
        writers = [writer for some in every.values() for writer in some]
        with writing(writers, again=True):
            wait_for(writers)
            for server in (one, other):
                assert server.stop() == 0
                server.tree = None
                server.start()
                wait_for(every[server.port])
            wait_for(writers)
        for server in (one, other):
            wait_until(partial(is_stored, server, writers))
            assert_stored(server, writers)


@pytest.mark.parametrize("tree", [WITH_BLOCKS], indirect=True)
def test_a_point_that_comes_while_this_release_deletes_those_before_stays_for_the_one_before(
    tree: Path, tmp_path: Path, engines: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes by a server of the release before, when the deletion of what lies before it is about to be noted."""
    with served(tmp_path / "one", tree=tree, **engines) as one:
        task = new_task(one)
        owner = Owner(one.call("tasks.get_by_id", {"task": task})["task"]["company"], task)
        for iter in range(3):
            report(one, task, iter)
        noted = ElasticsearchBlocks.delete_before

        async def delete_before(blocks: ElasticsearchBlocks, owner: Owner, place: int) -> None:
            await asyncio.to_thread(report, one, task, 7)
            assert await asyncio.to_thread(iterations, one, task) == [0, 1, 2, 7]
            await noted(blocks, owner, place)

        async def delete_known() -> int:
            monkeypatch.setattr(ElasticsearchBlocks, "delete_before", delete_before)
            store = ElasticsearchEventStore(elasticsearch_address(engines["events"]))
            await store.open()
            try:
                return await store.delete_scalars(owner, (await store.changes(ChangesQuery([owner]))).cursor)
            finally:
                await store.close()

        assert asyncio.run(delete_known()) == 3
        wait_until(lambda: 0 not in iterations(one, task))
        assert iterations(one, task) == [7]
        for iter in range(8, 30):  # so many that it makes a chunk of them
            report(one, task, iter)
        assert iterations(one, task) == [*range(7, 30)]
        with served(tmp_path / "other", **engines) as other:
            assert iterations(other, task) == [*range(7, 30)]


def report(server: Served, task: str, iter: int) -> None:
    point = {"task": task, "type": "training_stats_scalar", "metric": "loss", "variant": "train", "iter": iter}
    server.call("events.add", {**point, "value": iter / 8, "timestamp": 1_700_000_000_000 + iter})


def iterations(server: Served, task: str) -> list[int]:
    found = server.call("events.scalar_metrics_iter_histogram", {"task": task, "samples": 0})
    return [int(x) for x in found["loss"]["train"]["x"]] if found else []

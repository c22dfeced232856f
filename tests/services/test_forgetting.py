"""Nothing that a server holds names what is gone, so it does not grow while tasks, models and projects come and go."""

from __future__ import annotations

import gc
import json
import re
import sys
from collections.abc import Collection, Iterator
from types import FunctionType, ModuleType
from typing import Any
from urllib.parse import urlsplit

import pytest

from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.harness import Api

pytestmark = pytest.mark.anyio

#: How many tasks, with a model each, in a project each.
TASKS = 5


@pytest.mark.test
async def test_what_is_gone_is_named_nowhere(api: Api) -> None:
    """Except for the last deletions of events: those who follow their owners are told of them."""
    projects, tasks, models = set[str](), set[str](), set[str]()
    for number in range(TASKS):
        project, task, model = await _made(api, number)
        for found, id in ((projects, project), (tasks, task), (models, model)):
            found.add(id)
        await _used(api, project, task, model)
        await api.call("projects.delete", {"project": project, "force": True, "delete_contents": True})
    await _used(api, *await _made(api, TASKS))  # what is outdated goes when somebody asks for something else
    events = api.backend.events
    assert isinstance(events, EmbeddedEventStore)
    deleted = events._parts.unmerged._feed._deleted
    assert {owner.id for owner in deleted} == tasks | models
    deleted.clear()
    assert sorted(_naming(_held(api), projects | tasks | models)) == []


async def _made(api: Api, number: int) -> tuple[str, str, str]:
    project = (await api.call("projects.create", {"name": f"p{number}"}))["id"]
    made = {"name": "t", "type": "training", "project": project, "script": {"diff": "a"}}
    task = (await api.call("tasks.create", made))["id"]
    model = {"name": "m", "uri": "file:///m", "task": task, "project": project, "ready": False}
    return project, task, (await api.call("models.create", model))["id"]


async def _used(api: Api, project: str, task: str, model: str) -> None:
    """Write and read some of everything, as clients and pages do."""
    await api.call("tasks.started", {"task": task})
    of_model = {"task": model, "model_event": True}
    lines = [
        *({"type": "training_stats_scalar", "task": task, "metric": "m", "iter": i, "value": i} for i in range(5)),
        *({"type": "training_stats_scalar", **of_model, "metric": "m", "iter": i, "value": i} for i in range(5)),
        *({"type": "log", "task": task, "msg": f"line {i}"} for i in range(5)),
        {"type": "plot", "task": task, "metric": "p", "iter": 0, "plot_str": "{}"},
        {"type": "training_debug_image", "task": task, "metric": "i", "iter": 0, "url": "http://files/a.png"},
    ]
    added = await api.raw("POST", "/events.add_batch", content="\n".join(map(json.dumps, lines)))
    assert added.json()["data"]["added"] == len(lines)
    await api.backend.events.merge()  # type: ignore[attr-defined]
    questions: list[tuple[str, dict[str, Any]]] = [
        ("tasks.get_by_id", {"task": task}),
        ("tasks.get_all_ex", {"project": [project], "order_by": ["last_metrics.m"]}),
        ("models.get_all_ex", {"project": [project]}),
        ("projects.get_all_ex", {"id": [project], "include_stats": True}),
        ("projects.get_unique_metric_variants", {"project": project}),
        ("events.scalar_metrics_iter_histogram", {"task": task}),
        ("events.get_scalar_metrics_and_variants", {"task": task}),
        ("events.get_task_log", {"task": task}),
        ("events.get_task_plots", {"task": task}),
        ("events.debug_images", {"metrics": [{"task": task}]}),
    ]
    for endpoint, request in questions:
        await api.call(endpoint, request)
    for address in ("scalars", "scalars?points=2", "log", "log?offset=0", "plots"):
        answer = await api.raw("GET", f"/data/tasks/{task}/{address}")
        assert answer.status_code == 200, answer.text


def _held(api: Api) -> list[Any]:
    """The server, and what its modules keep, but not Python's own cache of addresses that were split."""
    modules = [module for name, module in sys.modules.items() if name.split(".")[0] == "apiserver"]
    return [api.app, *(one for module in modules for one in vars(module).values() if one is not urlsplit)]


def _naming(roots: list[Any], ids: Collection[str]) -> Iterator[str]:
    """What names one of the ids, of all that is reached from `roots`: its type, and the types of what led there."""
    pattern = re.compile("|".join(ids))
    seen, waiting = {id(roots)}, [(root, "") for root in roots]
    while waiting:
        thing, way = waiting.pop()
        if id(thing) in seen or isinstance(thing, ModuleType | type):
            continue
        seen.add(id(thing))
        if isinstance(thing, str | bytes):
            if pattern.search(thing if isinstance(thing, str) else thing.decode("latin-1")):
                yield way
            continue
        inside = [thing.__closure__, thing.__defaults__] if isinstance(thing, FunctionType) else gc.get_referents(thing)
        waiting += [(one, f"{way} > {type(thing).__name__}") for one in inside]

"""Measures what quotas and the audit log cost a batch of events: apps with and without them answer in turns.

All apps are in this process, and are called without a network, so that nothing else hides the difference.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import statistics
import time
from base64 import b64encode
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from apiserver.app import App, create_app
from apiserver.setting_values import QUOTAS_OF, Quota
from apiserver.settings import Settings
from benchmarks.bodies import scalar_lines
from benchmarks.figures import UNBOUNDED
from benchmarks.run import Run
from tests.harness import ADMIN_KEY, ADMIN_SECRET

#: Points and series of a batch.
_SMALL, _LARGE = (100, 100), (5000, 1000)
_QUOTAS = tuple(Quota(of, bytes=10**13, series=10**9, events_per_second=10**9) for of in QUOTAS_OF)
_BASIC = b"Basic " + b64encode(f"{ADMIN_KEY}:{ADMIN_SECRET}".encode())


def measure(run: Run) -> None:
    """The figures bounded.*."""
    asyncio.run(_measure(run))


async def _measure(run: Run) -> None:
    settings: dict[str, dict[str, Any]] = {
        UNBOUNDED: {"audit": "off"},
        "quotas": {"audit": "off", "quotas": _QUOTAS},
        "all": {"audit": "file", "quotas": _QUOTAS},
    }
    async with AsyncExitStack() as opened:
        apps = {
            name: await _opened(opened, run.folder / str(n), more) for n, (name, more) in enumerate(settings.items())
        }
        for size, (points, series) in (("small", _SMALL), ("large", _LARGE)):
            count = run.sizes.bounded_bodies if size == "small" else run.sizes.bounded_bodies // 10
            took = await _in_turns(list(apps.values()), points, series, count)
            medians = dict(zip(apps, took, strict=True))
            for name in ("quotas", "all"):
                run.table.put(f"bounded.{name}.{size}", medians[name], {UNBOUNDED: medians[UNBOUNDED]})


async def _opened(opened: AsyncExitStack, folder: Path, more: dict[str, Any]) -> App:
    app = create_app(Settings(data=folder, admin_key=ADMIN_KEY, admin_secret=ADMIN_SECRET, **more))
    await opened.enter_async_context(app.lifespan())
    return app


async def _in_turns(apps: Sequence[App], points: int, series: int, count: int) -> list[float]:
    """The median milliseconds of each app for a batch, after a tenth of the batches, which warm up."""
    tasks = [await _called(app, "/tasks.create", b'{"name": "a task", "type": "training"}') for app in apps]
    ids: list[str] = [json.loads(answer)["data"]["id"] for answer in tasks]
    took: list[list[float]] = [[] for _ in apps]
    order = random.Random(0)
    gc.collect()
    gc.disable()  # its pauses would fall on any app
    try:
        for number in range(count + count // 10):
            for which in order.sample(range(len(apps)), len(apps)):
                body = scalar_lines(ids[which], number * points, points, series)
                began = time.perf_counter()
                await _called(apps[which], "/events.add_batch", body)
                took[which].append(time.perf_counter() - began)
    finally:
        gc.enable()
    return [statistics.median(some[count // 10 :]) * 1e3 for some in took]


async def _called(app: App, path: str, body: bytes) -> bytes:
    """The answer of an app to a request."""
    headers = [
        (b"host", b"localhost"),
        (b"authorization", _BASIC),
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    answer: list[dict[str, Any]] = []
    bodies = iter([body])

    async def receive() -> dict[str, Any]:
        for one in bodies:
            return {"type": "http.request", "body": one, "more_body": False}
        await asyncio.Event().wait()  # the client stays
        raise AssertionError

    async def send(message: Any) -> None:
        answer.append(message)

    await app(scope, receive, send)
    if answer[0]["status"] != 200:
        raise RuntimeError(f"{answer[0]['status']} {answer[-1].get('body', b'')[:500]!r}")
    return b"".join(message.get("body", b"") for message in answer[1:])

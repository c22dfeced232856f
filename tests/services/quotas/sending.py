"""What the tests of quotas send to a server with quotas, and what they ask it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx

from apiserver.services.quotas.accounts import Account
from apiserver.services.quotas.amounts import Amounts
from apiserver.services.quotas.subjects import Subject
from apiserver.settings.values import Quota
from tests.harness import CHEAP_PASSWORDS, Api, running_api

COMPANY = "d1e5c0a8f00d4e0ab1e0c0ffee000001"


async def new_task(api: Api, name: str = "a task", **more: Any) -> str:
    return str((await api.call("tasks.create", {"name": name, "type": "training", **more}))["id"])


async def send(api: Api, *events: Mapping[str, Any], **options: Any) -> httpx.Response:
    return await api.raw("POST", "/events.add_batch", content="\n".join(map(json.dumps, events)), **options)


def points(task: str, count: int, *, variant: str = "v", first: int = 0) -> list[dict[str, Any]]:
    point = {"type": "training_stats_scalar", "task": task, "metric": "m", "variant": variant, "value": 1}
    return [{**point, "iter": first + n} for n in range(count)]


def line(task: str, text: str) -> dict[str, Any]:
    return {"type": "log", "task": task, "msg": text, "timestamp": 1}


def amounts(api: Api) -> Amounts:
    assert api.backend.quotas is not None
    return api.backend.quotas.amounts


@asynccontextmanager
async def with_quotas(data: Path, *quotas: Quota, clock: Sequence[float] = ()) -> AsyncIterator[Api]:
    """A server with quotas that has just added up, so that it does not again while the test runs.

    `clock`: its only item is the time.
    """
    bounds = replace(CHEAP_PASSWORDS, clock=lambda: clock[0]) if clock else None
    async with running_api(data, bounds, quotas=quotas) as api:
        await amounts(api).measure(COMPANY)
        yield api


FORM = {"content-type": "multipart/form-data; boundary=b"}


def form(sizes: Mapping[str, int]) -> bytes:
    """A form of files by their paths."""
    part = b'--b\r\nContent-Disposition: form-data; name="%s"; filename="f"\r\n\r\n%s\r\n'
    files = [part % (unquote(path).removeprefix("/files").encode(), b"x" * size) for path, size in sizes.items()]
    return b"".join([*files, b"--b--\r\n"])


async def usage(api: Api, more: str = "") -> list[dict[str, Any]]:
    answer = await api.raw("GET", f"/data/usage.json?by=quota{more}")
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()
    return rows


async def in_pieces(*sizes: int, before_last: asyncio.Event | None = None) -> AsyncIterator[bytes]:
    """A body that does not say how long it is."""
    for n, size in enumerate(sizes):
        if before_last is not None and n == len(sizes) - 1:
            await before_last.wait()
        yield b"x" * size


def of_task(task: str, name: str = "a.bin") -> str:
    return f"/files/p/a%20task.{task}/artifacts/{name}"


def used(api: Api, of: str, id: str) -> int:
    return account(api, of, id).bytes


def account(api: Api, of: str, id: str) -> Account:
    """The account of a subject; an empty one if nothing was counted for it."""
    assert api.backend.quotas is not None
    subject = Subject(of, COMPANY, id)
    return api.backend.quotas.accounts.of_company(COMPANY).get(subject, Account(subject, Quota(of)))

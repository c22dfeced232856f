"""Runs the examples against a server of their own, and keeps what it answers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import orjson

from docs.site.errors import SiteError
from docs.site.examples import Call
from tests.harness import served


@dataclass(frozen=True, slots=True)
class Answered:
    """A call, and what came back: `data` of the answer, or the text of a download."""

    call: Call
    data: Any


@contextmanager
def server() -> Iterator[httpx.Client]:
    """A client of a server that serves nobody else, with the admin's credentials."""
    with TemporaryDirectory() as folder, served(Path(folder) / "data") as running, running.client() as client:
        yield client


def given() -> dict[str, Any]:
    """The variables that are there before the first call."""
    now = int(time.time())
    return {"NOW": now, "NOW_MS": now * 1000, "DAY_AGO": now - 86_400}


def answers(client: httpx.Client, calls: list[Call]) -> Iterator[Answered]:
    """Call one after another; SiteError when one is refused."""
    variables = given()
    for call in calls:
        response = client.post(f"/{call.endpoint}", content=body(call, variables))
        if response.status_code != 200:
            raise SiteError(f"the example of {call.endpoint} is refused: {response.text}")
        is_json = response.headers["content-type"].startswith("application/json")
        data = response.json()["data"] if is_json else response.text
        variables |= {name: _at(data, path) for name, path in call.keep.items()}
        yield Answered(call, data)


def body(call: Call, variables: Mapping[str, Any]) -> bytes:
    """The body of a call: JSON, or of a batch JSON lines."""
    request = _filled(call.request, variables)
    return b"\n".join(map(orjson.dumps, request)) if isinstance(request, list) else orjson.dumps(request)


def _filled(value: Any, variables: Mapping[str, Any]) -> Any:
    """A value, with those of variables in place of their names."""
    if isinstance(value, str) and value.startswith("$"):
        return variables[value[1:]]
    if isinstance(value, Mapping):
        return {name: _filled(inner, variables) for name, inner in value.items()}
    return [_filled(inner, variables) for inner in value] if isinstance(value, list | tuple) else value


def _at(data: Any, path: str) -> Any:
    for name in path.split("."):
        data = data[name]
    return data

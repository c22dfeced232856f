"""Tiny applications for the tests: some HOCON, some handlers, a caller that is known."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from starlette.types import ASGIApp

from apiserver.rpc.auth import Authenticator
from apiserver.rpc.call import Call, Handler, Identity
from apiserver.rpc.dispatch import Dispatcher
from apiserver.rpc.registry import Registry
from apiserver.rpc.routes import build_routes
from apiserver.rpc.schema import EndpointTable, load_schemas

SECRET = "a secret of the tests, long enough"
ALICE = Identity(user="alice", company="acme", role="admin", user_name="Alice", company_name="Acme", key="AK")
LOGIN = ("AK", "sk")

DEMO = """
{
  echo {
    "2.1" {
      since: "1.0"
      request {
        type: object
        required: [task]
        properties {
          task { type: string }
          samples { type: integer, default: 6000, minimum: 0, maximum: 6000 }
          tags { type: array, items { type: string } }
          fresh { type: boolean }
        }
      }
    }
    "2.9" {
      request { type: object, additionalProperties: true }
    }
  }
  ping { "1.0" { description: "Answers anyone" } }
  add_batch { "1.0" { batch_request { action: echo, version: 2.1 } } }
  echo_batch { "1.0" { batch_request { action: echo, version: 2.1 } } }
}
"""


def write(folder: Path, **services: str) -> Path:
    """A folder of schemas: one file for each keyword."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in services.items():
        (folder / f"{name}.conf").write_text(text, encoding="utf-8")
    return folder


async def lookup(key: str, secret: str, client: str) -> Identity | None:
    return ALICE if (key, secret) == LOGIN else None


def authenticator(**options: Any) -> Authenticator:
    return Authenticator(SECRET, lookup, **options)


def demo_registry() -> Registry:
    """Handlers of DEMO: they answer what they were asked."""
    registry = Registry()

    @registry.endpoint("demo.echo", "2.1")
    async def echo(call: Call[Any], request: dict[str, Any]) -> dict[str, Any]:
        return request

    @registry.endpoint("demo.echo", "2.9")
    async def echo_anything(call: Call[Any], request: dict[str, Any]) -> dict[str, Any]:
        return {"request": request, "version": call.actual_version, "user": call.identity.user}

    @registry.endpoint("demo.ping", "1.0", anonymous=True)
    async def ping(call: Call[Any], request: dict[str, Any]) -> dict[str, Any]:
        return {"user": call.identity.user, "worker": call.worker}

    @registry.endpoint("demo.echo_batch", "1.0")
    async def echo_batch(call: Call[Any], request: dict[str, Any]) -> dict[str, Any]:
        return request

    @registry.endpoint("demo.add_batch", "1.0", raw=True)
    async def add_batch(call: Call[Any], request: dict[str, Any]) -> dict[str, Any]:
        return {"size": len(call.body), "head": call.body[:40].decode("latin-1"), "request": request}

    return registry


def demo_table(tmp_path: Path) -> EndpointTable:
    return load_schemas(write(tmp_path / "schemas", demo=DEMO))


def demo(tmp_path: Path, **options: Any) -> Dispatcher:
    return Dispatcher(build_routes(demo_table(tmp_path), demo_registry()), authenticator(), None, **options)


def single(
    tmp_path: Path, handler: Handler, *, auth: Authenticator | None = None, reads: bool = False, **options: Any
) -> Dispatcher:
    """An application of one endpoint, `one.call`, that takes any fields."""
    registry = Registry()
    registry.endpoint("one.call", "1.0")(handler)
    text = '{ call { "_reads": %s, "1.0" { request { type: object, additionalProperties: true } } } }'
    table = load_schemas(write(tmp_path / "single", one=text % str(reads).lower()))
    return Dispatcher(build_routes(table, registry), auth or authenticator(), None, **options)


def client(app: ASGIApp, **options: Any) -> httpx.AsyncClient:
    """A client of `app` without a socket, logged in unless told otherwise."""
    options.setdefault("auth", LOGIN)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api.test", **options)


@contextmanager
def served(app: ASGIApp) -> Iterator[int]:
    """`app` on a free port of 127.0.0.1; yields the port."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, http="httptools", ws="none", lifespan="off", log_level="critical", loop="asyncio")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.005)
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def meta(response: httpx.Response) -> dict[str, Any]:
    """The meta of an answer, after checking what holds for every answer."""
    answer = response.json()
    assert set(answer) == {"meta", "data"}
    assert answer["meta"]["result_code"] == response.status_code
    assert answer["meta"]["id"] == answer["meta"]["trx"]
    assert len(answer["meta"]["id"]) == 32
    assert answer["meta"]["error_stack"] is None
    assert response.headers["content-type"] == "application/json"
    assert "www-authenticate" not in response.headers
    if response.status_code != 200:
        assert answer["data"] == {}
    return dict(answer["meta"])

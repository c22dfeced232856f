"""One call of an endpoint, as its handler sees it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

#: What handlers reach through `call.backend`; the services define it, rpc only passes it on.
BackendT = TypeVar("BackendT")
T = TypeVar("T")


@dataclass(slots=True, frozen=True)
class Identity:
    """Who is calling."""

    user: str
    company: str
    role: str = "user"
    """What they may do, as services/access/roles.py has it."""
    user_name: str = ""
    company_name: str = ""
    key: str | None = None
    """The access key that was used, when it was one."""
    session: str | None = None
    """The login that the caller's token comes from, when it is one."""
    logged_in: int | None = None
    """When that was, in epoch seconds."""


ANONYMOUS = Identity(user="", company="", role="anonymous")


class Work(Protocol):
    """Runs what takes long in a thread, as `Body.work` says."""

    async def __call__(self, function: Callable[[], T], memory: int = 0) -> T: ...


async def _in_thread(function: Callable[[], T], memory: int = 0) -> T:
    return await asyncio.to_thread(function)


class Rules(Protocol):
    """Who may call what."""

    def check(self, caller: Identity, endpoint: str, *, reads: bool) -> None:
        """403/20 when the caller's role does not allow the endpoint; `reads`: whether that changes nothing."""


@dataclass(slots=True)
class Call(Generic[BackendT]):
    """A request after version resolution, authentication and validation.

    Handlers take `(call, request)`; `request` is the validated body as a dict, with defaults filled in.
    """

    id: str
    endpoint: str
    requested_version: str
    actual_version: str
    identity: Identity
    backend: BackendT
    headers: Mapping[str, str]
    """Request headers by lower-case name."""
    method: str = "POST"
    client: str = ""
    """The address that the request came from: the client's, or that of a proxy in between."""
    body: bytes = b""
    """The decoded body; raw handlers (`raw=True`) read it themselves."""
    work: Work = _in_thread
    """For what takes long to make of the body."""
    response_headers: list[tuple[str, str]] = field(default_factory=list)
    afterwards: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """What a reading handler has to keep, such as how far a walk has come: done once its answer is made, which may be
    refused as too large or be made again."""

    @property
    def by_cookie(self) -> bool:
        """Whether the caller is known by the cookie: a browser's page asks. A header with credentials comes first."""
        return "authorization" not in self.headers

    @property
    def worker(self) -> str:
        """The worker the client says it is, or ""."""
        return self.headers.get("x-clearml-worker") or self.headers.get("x-trains-worker") or ""


@dataclass(slots=True)
class Encoded:
    """A handler's answer that is already JSON, whole or in pieces: the value of the envelope's `data`."""

    json: bytes | list[bytes]


@dataclass(slots=True)
class Streamed:
    """A handler's answer that is no envelope but a body of its own, sent as it is made, such as a download.

    An error before the first chunk is answered as any other; after it, it can only break the connection.
    `chunks` is closed when it is no longer needed, also when the client leaves.
    """

    chunks: AsyncGenerator[bytes, None]
    content_type: str


Answer = dict[str, Any] | Encoded | Streamed
Handler = Callable[[Call[Any], dict[str, Any]], Awaitable[Answer]]

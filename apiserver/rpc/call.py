"""One call of an endpoint, as its handler sees it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

#: What handlers use through `call.backend`: the services define it, rpc only passes it on.
BackendT = TypeVar("BackendT")
T = TypeVar("T")


@dataclass(slots=True, frozen=True)
class Grant:
    """What an access key allows of what its owner may do."""

    scopes: tuple[str, ...] | None = None
    """What calls with the key may do: see services/access/scopes.py. None: whatever the owner may."""
    project: str | None = None
    """The project, by id, beyond which the key sees and changes nothing."""
    expires: float = math.inf
    """When the key ends, in epoch seconds."""


#: The grant of keys that allow everything, and of callers without a key.
FULL = Grant()


@dataclass(slots=True, frozen=True)
class Identity:
    """Who is calling."""

    user: str
    company: str
    role: str = "user"
    """What the caller may do: see services/access/roles.py."""
    user_name: str = ""
    company_name: str = ""
    key: str | None = None
    """The access key, if the caller or their token used one."""
    session: str | None = None
    """The id of the login that the caller's token comes from."""
    logged_in: int | None = None
    """The time of that login, in epoch seconds."""
    grant: Grant = FULL
    """What the access key allows, if the caller or their token used one."""
    service: bool = False
    """Whether the caller is a service account, as which no person signs in."""
    acted_by: str = ""
    """The id of the user who acts in the name of this one, as the request says, or did when the token was got."""


ANONYMOUS = Identity(user="", company="", role="anonymous")


class Work(Protocol):
    """Runs a function that takes long in a thread: see `Body.work`."""

    async def __call__(self, function: Callable[[], T], memory: int = 0) -> T: ...


async def _in_thread(function: Callable[[], T], memory: int = 0) -> T:
    return await asyncio.to_thread(function)


class Rules(Protocol):
    """Who may call what."""

    def check(self, caller: Identity, endpoint: str, *, reads: bool) -> None:
        """403/20 if the caller's role or access key does not allow the endpoint; `reads`: it changes nothing."""


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
    """The address that the request came from: the client's, or a proxy's."""
    tried: str = ""
    """The name of the user as whom somebody tried to log in."""
    body: bytes = b""
    """The decoded body; raw handlers (`raw=True`) parse it themselves."""
    work: Work = _in_thread
    """Runs slow work on the body."""
    response_headers: list[tuple[str, str]] = field(default_factory=list)
    afterwards: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """What to do once the answer is made, such as storing how far a walk has come. An answer may still be refused as
    too large, or be made a second time, so handlers that read store nothing earlier."""

    @property
    def by_cookie(self) -> bool:
        """Whether the cookie tells who calls, as for pages in a browser; an Authorization header comes before it."""
        return "authorization" not in self.headers

    @property
    def worker(self) -> str:
        """The worker that the client says it is, or ""."""
        return self.headers.get("x-clearml-worker") or self.headers.get("x-trains-worker") or ""


@dataclass(slots=True)
class Encoded:
    """An answer that is JSON already, whole or in pieces: the value of the envelope's `data`."""

    json: bytes | list[bytes]


@dataclass(slots=True)
class Streamed:
    """An answer without envelope that is sent while it is made, such as a download.

    An error before the first chunk gets an ordinary error answer; a later one can only break the connection.
    `chunks` is closed at the end, also if the client leaves.
    """

    chunks: AsyncGenerator[bytes, None]
    content_type: str


Answer = dict[str, Any] | Encoded | Streamed
Handler = Callable[[Call[Any], dict[str, Any]], Awaitable[Answer]]

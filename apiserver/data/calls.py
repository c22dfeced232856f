"""A request for data, as the functions that answer it see it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from fastapi import Depends, Request

from apiserver.data.parts import DataParts
from apiserver.rpc.admission import Reading
from apiserver.rpc.call import Identity
from apiserver.rpc.disconnects import while_connected
from apiserver.rpc.errors import ApiError
from apiserver.rpc.reads_at_once import WhileConnected
from apiserver.services.backend import Backend, Call


@dataclass(slots=True)
class DataCall:
    """An authenticated request."""

    parts: DataParts
    caller: Identity
    request: Request
    headers: dict[str, str]
    """By lower-case name."""
    id: str
    """By which answers and logs name the request."""
    reading: Reading
    link: str | None = None
    """What the link covers that the request came with, such as `tasks/<id>`."""

    @property
    def backend(self) -> Backend:
        """What handlers may use."""
        return self.parts.backend

    @property
    def reader(self) -> Identity:
        """Who waits for a turn. Those who use a link do not use up the turns of its maker."""
        return self.caller if self.link is None else replace(self.caller, user=f"{self.caller.user} {self.link}")

    def refuse_link(self) -> None:
        """403 for a link: it is for one task or project."""
        if self.link is not None:
            raise ApiError(403, 0, "The link is for one task or project")

    @property
    def while_connected(self) -> WhileConnected:
        """Ends a block with ClientDisconnected if the client leaves."""
        return partial(while_connected, self.request.receive)

    def of(self, endpoint: str) -> Call:
        """This request as a call of an endpoint of the API, for the services' functions."""
        return Call(self.id, endpoint, "999.0", "999.0", self.caller, self.backend, self.headers, method="GET")


def bad_parameter(name: str, reason: str) -> ApiError:
    """400: the value of a parameter is wrong."""
    return ApiError(400, 0, f"{name}: {reason}", data={"parameter": name})


def not_found(what: str, name: str) -> ApiError:
    """404: there is no such task or project, or the caller may not read it."""
    return ApiError(404, 0, f"There is no {what} '{name[:200]}'")


async def _call_of(request: Request) -> DataCall:
    # A coroutine, although it waits for nothing: FastAPI runs other functions in threads. A thousand requests that come
    # at once would be in memory together while each waits for its thread.
    call: DataCall = request.state.call
    return call


#: A parameter of functions that answer: the call, whose caller the route has authenticated before.
TheCall = Annotated[DataCall, Depends(_call_of)]

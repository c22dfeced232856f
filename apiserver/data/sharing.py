"""Making links: an address that opens one task or project without a login, for some time."""

from __future__ import annotations

import time
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

from fastapi import Body
from pydantic import BaseModel, Field

from apiserver.data.calls import TheCall, bad_parameter
from apiserver.data.links import LONGEST
from apiserver.data.places import ALL, find_owner, find_project
from apiserver.data.routes import router
from apiserver.rpc.errors import ApiError

routes = router()

#: The ends of addresses that are of two parts.
_OF_LOGS = (("log", "hits"), ("log", "line"), ("log", "workers"))
_EXPECTED = "it must be that of a task or project, such as /data/tasks/<id>/scalars.csv"


class LinkRequest(BaseModel, extra="forbid"):
    """What a link should open, and for how long."""

    address: str = Field(max_length=8192, description="An address of a task or project: `/data/tasks/…/scalars.csv`.")
    seconds: int = Field(3600, ge=1, le=LONGEST, description="How long the link is valid.")


@routes.post("/links", operation_id="data.links.make", responses={200: {"description": "The link"}})
async def make(call: TheCall, link_request: Annotated[LinkRequest, Body()]) -> Any:
    """Make a link that opens all data of the task or project in `address`, and nothing else, without a login.

    It ends after `seconds`, or when its maker may not read the task any more.
    """
    if call.link is not None:
        raise ApiError(403, 0, "A link cannot make links")
    try:
        parts = urlsplit(link_request.address)
    except ValueError:  # such as http://[
        raise bad_parameter("address", _EXPECTED) from None
    covers, address = await _covered(call, parts.path)
    token = call.parts.links.token(call.caller, covers, link_request.seconds)
    query = "&".join(filter(None, (parts.query, f"token={token}")))
    link = f"{address}?{query}"
    server = str(call.request.base_url).rstrip("/")
    return {"url": server + link, "address": link, "token": token, "expires": int(time.time()) + link_request.seconds}


async def _covered(call: TheCall, path: str) -> tuple[str, str]:
    """What the link covers, and the address with the id of it."""
    empty, data, kind, *rest = [*path.split("/"), "", "", ""]
    names = [name for name in rest if name]
    cut = -2 if tuple(names[-2:]) in _OF_LOGS else -1
    name, what = "/".join(names[:cut]), "/".join(names[cut:])
    if (empty, data) != ("", "data") or kind not in ("tasks", "projects") or not name or not what:
        raise bad_parameter("address", _EXPECTED)
    if kind == "projects" and name == ALL:
        raise bad_parameter("address", "a link is for one project")
    id = (await find_owner(call, name)).id if kind == "tasks" else (await find_project(call, name))["id"]
    return f"{kind}/{id}", f"/data/{kind}/{quote(id)}/{quote(what)}"

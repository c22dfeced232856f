"""Leads from the URL of a file, as a run reported it, to the file on this port.

A run reports where a file lies: `http://files.example:8081/project/task/picture.png`. A page may load nothing from
there, and has no cookie for it. The same file is also below `/files` of the API's port. Only the server knows by which
names clients call its file server, so pages ask here.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote, urlsplit

from fastapi import Query, Response
from fastapi.responses import RedirectResponse

from apiserver.data.calls import TheCall
from apiserver.data.routes import router
from apiserver.fileserver.addresses import names_of
from apiserver.rpc.errors import ApiError

routes = router()

FILES = "/files"

Url = Annotated[str, Query(max_length=8192, description="The URL of the file, as it was reported.")]


@routes.get("/file", operation_id="data.file", status_code=307, response_class=RedirectResponse)
async def file(call: TheCall, url: Url) -> Response:
    """Lead to a file of this server, below `/files`. 404 if the URL names a file of another one."""
    if call.link is not None:
        raise ApiError(403, 0, "A link opens tables, not files")
    hosts = await call.backend.file_deletions.hosts_by(call.caller.company, call.headers.get("host", ""))
    names = names_of(url, hosts)
    if not names:
        raise ApiError(404, 0, f"This server has no files of {urlsplit(url).hostname or 'that address'}")
    if not {".", ".."}.isdisjoint(names[-1].split("/")):  # it would lead out of /files
        raise ApiError(404, 0, "The name of a file has no '.' or '..' step")
    # `names` has two for /files/a: a file of that name on the files' own port, and the file /a on this one.
    return RedirectResponse(FILES + quote(names[-1]))

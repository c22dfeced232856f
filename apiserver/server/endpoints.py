"""What can be called: the API's endpoints, the addresses of data, the vendors' APIs; `/openapi.json` describes them."""

from __future__ import annotations

import threading
from functools import cache
from typing import NamedTuple

import orjson
from fastapi import Request, Response

from apiserver.common import resources
from apiserver.data import addresses
from apiserver.rpc.openapi import openapi as described_endpoints
from apiserver.rpc.openapi import with_routes
from apiserver.rpc.reply import SAFE_HEADERS
from apiserver.rpc.routes import Routes, build_routes
from apiserver.rpc.schema import EndpointTable, load_schemas
from apiserver.rpc.sending import LargeResponse
from apiserver.server.described import other_paths
from apiserver.services import loading
from apiserver.services.backend import registry
from apiserver.services.older_clients.metadata import with_older_metadata
from apiserver.services.older_clients.tags import with_older_tags
from apiserver.vendors import baseten, modelarts, pai

#: The vendors whose APIs the server answers, beside ClearML's.
VENDORS = (modelarts.router, baseten.router, pai.router)
#: The routes that FastAPI answers. They are put into the app as they are: to include a router would make each anew.
ROUTES = [*(route for vendor in VENDORS for route in vendor.routes), *addresses.ROUTES]

_describing = threading.Lock()


class Endpoints(NamedTuple):
    """The endpoints of the API."""

    table: EndpointTable
    """As `schemas` describe them."""
    routes: Routes
    """How each is served."""


@cache
def endpoints() -> Endpoints:
    """The endpoints: the same for all servers of a process.

    Raises SchemaFileError.
    """
    schemas = resources.path("schemas")
    table = load_schemas(schemas, schemas / resources.PARSED)
    loading.load({name.partition(".")[0] for name in table})
    registrations = [with_older_metadata(with_older_tags(registration)) for registration in registry]
    return Endpoints(table, build_routes(table, registrations))


def openapi(request: Request) -> Response:
    """Answer `/openapi.json`."""
    with _describing:
        content = description()
    response = LargeResponse(content, media_type="application/json")
    response.raw_headers += SAFE_HEADERS
    return response


@cache
def description() -> bytes:
    """The description of all addresses as JSON. It is made once, when it is asked for: that takes long."""
    described = with_routes(described_endpoints(endpoints().table), ROUTES)
    return orjson.dumps({**described, "paths": {**described["paths"], **other_paths()}})

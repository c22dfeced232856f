"""The endpoint table as an OpenAPI 3.1 document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi.openapi.utils import get_openapi
from starlette.routing import BaseRoute

from apiserver.rpc.auth import TOKEN_COOKIE
from apiserver.rpc.schema import EndpointTable, EndpointVersion
from apiserver.rpc.schema_bounds import FREE_BOUNDS, Schema
from apiserver.rpc.versions import NEWEST

_META = {"$ref": "#/components/schemas/meta"}
_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer"}


def openapi(table: EndpointTable) -> dict[str, Any]:
    """The document: a path for each version of each public endpoint, and a path without version for its newest."""
    paths: dict[str, Any] = {}
    for name, versions in sorted(table.items()):
        public = [endpoint for endpoint in versions if not endpoint.internal]
        paths |= {f"/v{endpoint.version}/{name}": _path(endpoint, f"{name}@{endpoint.version}") for endpoint in public}
        if public:
            paths[f"/{name}"] = _path(public[-1], name)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Events API server",
            "version": str(NEWEST),
            "description": "GET, POST and PUT are alike; fields come in a JSON body, in the query string, or in both. "
            "With the cookie, a request that changes something must be a POST or PUT of JSON, sent by a page of the "
            "server's own origin.",
        },
        "paths": paths,
        "security": [{"basic": []}, {"bearer": []}, {"cookie": []}],
        "components": {
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic", "description": "Access key and secret"},
                "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": TOKEN_COOKIE},
            },
            "schemas": {"meta": _meta()},
            "responses": {"error": _json("An error: `meta` says which", _envelope({"type": "object"}))},
        },
    }


def with_routes(document: dict[str, Any], routes: Sequence[BaseRoute]) -> dict[str, Any]:
    """The document with the paths of FastAPI's routes; they take this server's own credentials, too."""
    added = get_openapi(title="", version="", routes=routes)
    for path in added["paths"].values():
        for operation in path.values():
            operation["security"] = [*operation.get("security", []), *document["security"]]
    components = {
        name: {**document["components"].get(name, {}), **added.get("components", {}).get(name, {})}
        for name in document["components"].keys() | added.get("components", {}).keys()
    }
    return {**document, "paths": {**document["paths"], **added["paths"]}, "components": components}


def _path(endpoint: EndpointVersion, operation: str) -> dict[str, Any]:
    return {
        "post": {
            "operationId": operation,
            "tags": [endpoint.name.partition(".")[0]],
            "description": endpoint.description,
            "requestBody": {"content": _request(endpoint)},
            "responses": {"200": _response(endpoint), "default": {"$ref": "#/components/responses/error"}},
        }
    }


def _request(endpoint: EndpointVersion) -> dict[str, Any]:
    if endpoint.item is None:
        return {"application/json": {"schema": _with_nulls(endpoint.request)}}
    most = "" if endpoint.most_items is None else f", at most {endpoint.most_items}"
    item = _with_nulls(endpoint.item)
    lines = {"type": "string", "description": f"One JSON object a line{most}", "contentSchema": item}
    return {"application/json-lines": {"schema": {**lines, "contentMediaType": "application/json-lines"}}}


def _response(endpoint: EndpointVersion) -> dict[str, Any]:
    if endpoint.response.get("type") == "string":
        return {"description": "The content itself, streamed", "content": {"*/*": {"schema": endpoint.response}}}
    return _json("The answer", _envelope(_with_nulls(endpoint.response)))


def _with_nulls(schema: Any) -> Any:
    """A schema as OpenAPI 3.1 writes it: `nullable` becomes a type, and bounds of our own get names with `x-`."""
    if isinstance(schema, list):
        return [_with_nulls(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    said = {
        f"x-{name}" if name in FREE_BOUNDS else name: _with_nulls(value)
        for name, value in schema.items()
        if (name, value) != ("nullable", True)
    }
    return {**said, "type": [schema["type"], "null"]} if schema.get("nullable") is True else said


def _json(description: str, schema: Schema) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _envelope(data: Schema) -> Schema:
    return {"type": "object", "required": ["meta", "data"], "properties": {"meta": _META, "data": data}}


def _meta() -> Schema:
    maybe_text = {"type": ["string", "null"]}
    endpoint = {"name": _TEXT, "requested_version": maybe_text, "actual_version": maybe_text}
    return {
        "type": "object",
        "properties": {
            "id": _TEXT,
            "trx": _TEXT,
            "endpoint": {"type": "object", "properties": endpoint},
            "result_code": {**_COUNT, "description": "Equals the HTTP status"},
            "result_subcode": _COUNT,
            "result_msg": _TEXT,
            "error_stack": {"type": "null"},
            "error_data": {"type": "object"},
        },
    }

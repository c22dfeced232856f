"""What `/openapi.json` says of addresses that are no endpoints, no tables and no calls of vendors.

Pages for browsers are not described: `pages/addresses.py` says where they are.
"""

from __future__ import annotations

from typing import Any

Described = dict[str, Any]

_ANYBODY: list[Any] = []
_TEXT = {"type": "string"}
_PATH = {
    "name": "path",
    "in": "path",
    "required": True,
    "schema": _TEXT,
    "description": "The file's name, with slashes",
}
_STATUS = {"type": "object", "properties": {"message": {"type": "string", "description": "Why"}}}
_PARTIAL = {"type": "object", "properties": {"rejectedDataPoints": _TEXT, "errorMessage": _TEXT}}


def _json(schema: Described, description: str = "The answer") -> Described:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _otlp(schema: Described, message: str, description: str) -> Described:
    """A body in both forms of OTLP: a JSON object, or a message of Protocol Buffers."""
    binary = {"type": "string", "contentMediaType": "application/x-protobuf", "description": message}
    forms = {"application/json": {"schema": schema}, "application/x-protobuf": {"schema": binary}}
    return {"description": description, "content": forms}


def _metrics_of_otlp() -> Described:
    request = {"type": "object", "properties": {"resourceMetrics": {"type": "array", "items": {"type": "object"}}}}
    taken = {"type": "object", "properties": {"partialSuccess": _PARTIAL}}
    reasons = {
        "400": "The body is not a request",
        "401": "Credentials are missing or wrong",
        "403": "The role may not report events",
        "413": "The body is too large, or has more than a million fields",
        "415": "The Content-Type is neither of the two",
        "429": "Too many requests at once: send it again after `Retry-After` seconds",
        "503": "The server cannot take more now: send it again after `Retry-After` seconds",
    }
    body = _otlp(request, "opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest", "Points")
    answer = "Taken, but for so many points. It has the form of the request"
    taken_as = _otlp(taken, "opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceResponse", answer)
    refused = {code: _otlp(_STATUS, "google.rpc.Status", reason) for code, reason in reasons.items()}
    return {
        "operationId": "otlp.metrics",
        "tags": ["opentelemetry"],
        "description": "Takes metrics of OpenTelemetry by OTLP over HTTP. The attribute `clearml.task.id` says whose "
        "curves they become. `Content-Encoding` may be gzip.",
        "requestBody": {"required": True, **body},
        "responses": {"200": taken_as, **refused},
    }


def _health(name: str) -> Described:
    stores = {"type": "object", "additionalProperties": {"type": "string", "enum": ["ok", "down"]}}
    scrub = {"type": "object", "properties": {"findings": {"type": "integer"}, "ended": {"type": ["string", "null"]}}}
    schema = {"type": "object", "properties": {"status": _TEXT, "version": _TEXT, "stores": stores, "scrub": scrub}}
    return {
        "operationId": name,
        "tags": ["server"],
        "description": "Whether the server can use its stores.",
        "security": _ANYBODY,
        "responses": {"200": _json(schema, "It can"), "503": _json(schema, "`stores` says which does not answer")},
    }


def _livez() -> Described:
    content = {"text/plain": {"schema": _TEXT}}
    return {
        "operationId": "livez",
        "tags": ["server"],
        "description": "Whether the process answers. It asks no store.",
        "security": _ANYBODY,
        "responses": {"200": {"description": "It does", "content": content}},
    }


def _metrics() -> Described:
    forms = ("application/openmetrics-text", "text/plain")
    return {
        "operationId": "metrics",
        "tags": ["server"],
        "description": "Numbers about the server for Prometheus: for admins, or with the `metrics_token` of the "
        "settings as a bearer token.",
        "responses": {
            "200": {"description": "The numbers", "content": {form: {"schema": _TEXT} for form in forms}},
            "default": {"description": "An error"},
        },
    }


def _openapi() -> Described:
    return {
        "operationId": "openapi",
        "tags": ["server"],
        "description": "This document.",
        "security": _ANYBODY,
        "responses": {"200": _json({"type": "object"})},
    }


_ERROR = {"$ref": "#/components/responses/error"}
_CONTENT = {"*/*": {"schema": {"type": "string", "format": "binary"}}}


def _file(name: str, description: str, answer: Described, **more: Any) -> Described:
    said = {"operationId": f"files.{name}", "tags": ["files"], "description": description}
    return {**said, "responses": {"200": answer, "default": _ERROR}, **more}


def _files() -> Described:
    one = {"type": "object", "properties": {"path": _TEXT, "size": {"type": "integer"}}}
    stored = _json({"type": "object", "properties": {"files": {"type": "array", "items": one}}}, "What was stored")
    deleted = _json(
        {"type": "object", "properties": {"deleted": {"type": "array", "items": _TEXT}}}, "What was deleted"
    )
    form = {"multipart/form-data": {"schema": {"type": "object", "additionalProperties": _TEXT}}}
    whole = {"description": "The file, or with `Range` a part of it as 206", "content": _CONTENT}
    body = {"requestBody": {"required": True, "content": _CONTENT}}
    named = {"parameters": [_PATH]}
    return {
        "/files": {
            "post": _file(
                "post",
                "Uploads files. The name of a field is the path of the file.",
                stored,
                requestBody={"content": form},
            )
        },
        "/files/{path}": {
            "get": _file(
                "get", "Answers a file. Files have a port of their own, too, without `/files`.", whole, **named
            ),
            "head": _file("head", "As GET, without the content.", {"description": "What GET would answer"}, **named),
            "put": _file("put", "Uploads a file.", stored, **body, **named),
            "delete": _file("delete", "Deletes a file.", deleted, **named),
        },
    }


def other_paths() -> Described:
    """The paths and what can be done there, as a document of OpenAPI has them."""
    return {
        "/health": {"get": _health("health")},
        "/readyz": {"get": _health("readyz")},
        "/livez": {"get": _livez()},
        "/metrics": {"get": _metrics()},
        "/v1/metrics": {"post": _metrics_of_otlp()},
        "/openapi.json": {"get": _openapi()},
        **_files(),
    }

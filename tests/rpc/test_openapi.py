"""The endpoint table as OpenAPI."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from fastapi.openapi.models import OpenAPI

from apiserver.common.resources import PARSED
from apiserver.rpc.openapi import openapi
from apiserver.rpc.schema import load_schemas
from tests.rpc.apps import write

EVENTS = """
{
  add {
    "2.1" {
      description: "Adds one"
      request { type: object, anyOf: [
        { type: object, required: [type], properties { type { const: log }, msg { type: string, maxLength: 5 } } }
        { type: object, additionalProperties { type: number, minimum: 0.5 } }
      ] }
    }
  }
  add_batch { "2.1" { since: "1.0", batch_request { action: add, version: 2.1 } } }
  get_log {
    "1.7" { request { type: object, properties { n { type: integer, default: 5, enum: [5, 6] } } } }
    "2.9" {
      request {
        type: object
        required: [tasks]
        properties {
          tasks { type: array, minItems: 1, items { type: string } }
          scroll { type: string, nullable: true }
        }
      }
      response {
        type: object
        properties { events { type: array, items { type: object } }, total { type: integer, nullable: true } }
      }
    }
  }
  download { "2.1" { response { type: string } } }
  secret { "1.0" { internal: true } }
}
"""


@pytest.fixture
def document(tmp_path: Path) -> dict[str, Any]:
    described = openapi(load_schemas(write(tmp_path, events=EVENTS)))
    copied: dict[str, Any] = orjson.loads(orjson.dumps(described))
    return copied


#: The keywords of JSON Schema 2020-12 that our schemas are written in, and the types their values must have.
KEYWORDS: dict[str, type | tuple[type, ...]] = {
    "$ref": str,
    "type": (str, list),
    "description": str,
    "format": str,
    "properties": dict,
    "required": list,
    "additionalProperties": (bool, dict),
    "items": dict,
    "anyOf": list,
    "enum": list,
    "const": object,
    "default": object,
    "minimum": (int, float),
    "maximum": (int, float),
    "minItems": int,
    "maxItems": int,
    "minLength": int,
    "maxLength": int,
    "maxProperties": int,
    "x-maxValues": int,
    "x-maxDepth": int,
    "x-maxText": int,
    "x-maxName": int,
    "contentSchema": dict,
    "contentMediaType": str,
}


def schemas(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """`schema` and all schemas inside it."""
    yield schema
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]
    inner += [schema[key] for key in ("items", "additionalProperties", "contentSchema") if key in schema]
    for one in inner:
        if isinstance(one, dict):
            yield from schemas(one)


def assert_valid(document: dict[str, Any]) -> None:
    """Hold the document against the rules of OpenAPI 3.1 for what it uses."""
    OpenAPI.model_validate(document)
    operations = [path["post"] for path in document["paths"].values()]
    assert all(path.startswith("/") for path in document["paths"])
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    named = document["components"]["responses"]
    answers = [answer for operation in operations for answer in operation["responses"].values()]
    for answer in [*answers, *named.values()]:
        assert answer == {"$ref": "#/components/responses/error"} or isinstance(answer["description"], str)
    contents = [part["content"] for part in [*named.values(), *answers] if "content" in part]
    contents += [operation["requestBody"]["content"] for operation in operations]
    tops = [media["schema"] for content in contents for media in content.values()]
    for schema in (inner for top in [*tops, *document["components"]["schemas"].values()] for inner in schemas(top)):
        assert all(isinstance(value, KEYWORDS[key]) for key, value in schema.items()), schema
        assert schema.get("$ref", "#/components/schemas/meta") == "#/components/schemas/meta"
        assert all(name in schema["properties"] for name in schema.get("required", ()))
    for requirement in document["security"]:
        assert requirement.keys() <= document["components"]["securitySchemes"].keys()


def test_it_is_valid(document: dict[str, Any]) -> None:
    assert_valid(document)


@pytest.mark.test
def test_the_document_of_the_server_itself_is_valid() -> None:
    folder = Path(__file__).parents[2] / "schemas"
    described = openapi(load_schemas(folder, folder / PARSED))
    assert_valid(orjson.loads(orjson.dumps(described)))
    assert "/events.add_batch" in described["paths"]


def test_every_public_version_has_a_path_and_the_newest_one_without(document: dict[str, Any]) -> None:
    assert set(document["paths"]) == {
        "/v2.1/events.add",
        "/events.add",
        "/v2.1/events.add_batch",
        "/events.add_batch",
        "/v1.7/events.get_log",
        "/v2.9/events.get_log",
        "/events.get_log",
        "/v2.1/events.download",
        "/events.download",
    }
    newest, named = (document["paths"][path]["post"] for path in ("/events.get_log", "/v2.9/events.get_log"))
    assert newest["requestBody"] == named["requestBody"]
    assert newest["operationId"] != named["operationId"]


def test_requests_are_the_schemas(document: dict[str, Any]) -> None:
    body = document["paths"]["/v1.7/events.get_log"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"type": "object", "properties": {"n": {"type": "integer", "default": 5, "enum": [5, 6]}}}


def test_answers_are_in_the_envelope(document: dict[str, Any]) -> None:
    answer = document["paths"]["/v2.9/events.get_log"]["post"]["responses"]["200"]["content"]["application/json"]
    assert answer["schema"]["properties"]["meta"] == {"$ref": "#/components/schemas/meta"}
    assert answer["schema"]["properties"]["data"]["properties"]["events"]["type"] == "array"


def test_a_batch_is_lines_of_what_one_is(document: dict[str, Any]) -> None:
    content = document["paths"]["/events.add_batch"]["post"]["requestBody"]["content"]
    one = document["paths"]["/events.add"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert content["application/json-lines"]["schema"]["contentSchema"] == one


def test_a_download_has_no_envelope(document: dict[str, Any]) -> None:
    assert "*/*" in document["paths"]["/events.download"]["post"]["responses"]["200"]["content"]


def test_callers_may_say_who_they_are_in_three_ways(document: dict[str, Any]) -> None:
    assert document["components"]["securitySchemes"].keys() == {"basic", "bearer", "cookie"}
    assert document["security"] == [{"basic": []}, {"bearer": []}, {"cookie": []}]


def test_what_may_be_null_is_said_as_json_schema_does(document: dict[str, Any]) -> None:
    answer = document["paths"]["/v2.9/events.get_log"]["post"]["responses"]["200"]["content"]["application/json"]
    fields = answer["schema"]["properties"]["data"]["properties"]
    assert (fields["total"], fields["events"]["type"]) == ({"type": ["integer", "null"]}, "array")
    asked = document["paths"]["/v2.9/events.get_log"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert asked["properties"]["scroll"]["type"] == ["string", "null"]

"""The endpoint table, from schema files."""

from __future__ import annotations

from pathlib import Path

import pytest

from apiserver.rpc.schema import EndpointVersion, SchemaFileError, load_schemas
from apiserver.rpc.schema_bounds import bounded
from apiserver.rpc.versions import Version
from tests.rpc.apps import write

GOLDEN = '''
{
  _description : "Events in and out"
  _definitions {
    point {
      description: "One point"
      type: object
      required: [ task, type ]
      properties {
        task {
          description: "Task id"
          type: string
        }
        type { const: "scalar" }
        value { type: number }
        level { "$ref": "#/definitions/level" }
      }
    }
    line {
      type: object
      required: [ task ]
      properties {
        task { type: string, maxLength: 64 }
        type { const: "log" }
      }
    }
    level {
      type: string
      enum: [
        debug
        info
      ]
    }
  }
  add {
    "2.1" {
      description: """ Adds
      one """
      request {
        type: object
        anyOf: [
          { "$ref": "#/definitions/point" }
          { "$ref": "#/definitions/line" }
        ]
      }
      response {
        type: object
        // nothing is promised
        additionalProperties: true
      }
    }
  }
  add_batch {
    "2.1" {
      since: "1.0"
      batch_request: {
        action: add
        version: 1.5
      }
      response {
        type: object
        properties {
          added { type: integer }
        }
      }
    }
  }
  get_log{
    "2.9": {
      request {
        type: object
        required: [
          task
        ]
        properties {
          task { type:string }
          levels {
            type: array
            items { "$ref": "#/definitions/level" }
            minItems: 1
          }
          from {
            "description": "Where to begin"
            "$ref": "#/definitions/level"
            default: info
          }
          samples { type: integer, minimum: 0, maximum: 6000, default: 6000 }
        }
      }
      response { type: string }
    }
    "1.7" {
      internal: true
      _note: "underscores are for people"
    }
  }
}
'''

LEVEL = {"type": "string", "enum": ["debug", "info"]}
POINT = {
    "description": "One point",
    "type": "object",
    "required": ["task", "type"],
    "properties": {
        "task": {"description": "Task id", "type": "string"},
        "type": {"const": "scalar"},
        "value": {"type": "number"},
        "level": LEVEL,
    },
}
LINE = {
    "type": "object",
    "required": ["task"],
    "properties": {"task": {"type": "string", "maxLength": 64}, "type": {"const": "log"}},
}
ITEM = {"type": "object", "anyOf": [POINT, LINE]}


def test_the_table_of_a_service_is_what_its_file_says(tmp_path: Path) -> None:
    table = load_schemas(write(tmp_path, events=GOLDEN))
    v1_7, v2_1, v2_9 = Version(1, 7), Version(2, 1), Version(2, 9)
    nothing = {"type": "object", "properties": {}}
    assert table == {
        "events.add": (
            EndpointVersion(
                "events.add",
                v2_1,
                v2_1,
                "Adds\n      one",
                bounded(ITEM),
                {"type": "object", "additionalProperties": True},
            ),
        ),
        "events.add_batch": (
            EndpointVersion(
                "events.add_batch",
                v2_1,
                Version(1, 0),
                "",
                nothing,
                {"type": "object", "properties": {"added": {"type": "integer"}}},
                item=bounded(ITEM),
            ),
        ),
        "events.get_log": (
            EndpointVersion("events.get_log", v1_7, v1_7, "", nothing, {"type": "object"}, internal=True),
            EndpointVersion(
                "events.get_log",
                v2_9,
                v2_9,
                "",
                bounded(
                    {
                        "type": "object",
                        "required": ["task"],
                        "properties": {
                            "task": {"type": "string"},
                            "levels": {"type": "array", "items": LEVEL, "minItems": 1},
                            "from": {"description": "Where to begin", "default": "info", **LEVEL},
                            "samples": {"type": "integer", "minimum": 0, "maximum": 6000, "default": 6000},
                        },
                    }
                ),
                {"type": "string"},
            ),
        ),
    }


@pytest.mark.test
def test_a_cached_table_is_the_same(tmp_path: Path) -> None:
    folder = write(tmp_path / "schemas", events=GOLDEN, _definitions='shared { type: string, enum: ["1.0", x] }')
    first = load_schemas(folder, tmp_path / "cache")
    assert load_schemas(folder, tmp_path / "cache") == first == load_schemas(folder)
    assert sorted(kept.name for kept in (tmp_path / "cache").iterdir()) == ["_definitions.json", "events.json"]


def test_a_file_is_a_service_and_versions_sort_by_number(tmp_path: Path) -> None:
    table = load_schemas(write(tmp_path, a='x { "2.12" {}, "2.9" {} }', b='y { "1.0" {} }'))
    assert list(table) == ["a.x", "b.y"]
    assert [str(version.version) for version in table["a.x"]] == ["2.9", "2.12"]


def test_definitions_may_be_shared_and_overridden(tmp_path: Path) -> None:
    request = 'request { type: object, properties { a { "$ref": "#/definitions/id" } } }'
    folder = write(
        tmp_path,
        _definitions="id { type: string }",
        own=f'_definitions {{ id {{ type: integer }} }}\nx {{ "1.0" {{ {request} }} }}',
        other=f'x {{ "1.0" {{ {request} }} }}',
    )
    table = load_schemas(folder)
    assert table["own.x"][0].request["properties"]["a"] == {"type": "integer"}
    assert table["other.x"][0].request["properties"]["a"]["type"] == "string"


def test_a_line_of_a_batch_is_the_newest_request_up_to_the_named_version(tmp_path: Path) -> None:
    text = """
      add {
        "1.5" { request { type: object, properties { one { type: string } } } }
        "2.0" { request { type: object, properties { two { type: string } } } }
      }
    """
    batch = 'add_batch {{ "1.0" {{ batch_request {{ action: add, version: "{}" }} }} }}'
    for version, field in (("1.0", "one"), ("1.9", "one"), ("2.0", "two"), ("9.0", "two")):
        table = load_schemas(write(tmp_path, events=text + batch.format(version)))
        item = table["events.add_batch"][0].item
        assert item is not None
        assert list(item["properties"]) == [field]


@pytest.mark.test
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("log {", "events.conf: "),
        ("log: 5", "events.conf: events.log: must be an object"),
        ("log {}", "events.conf: events.log: has no version"),
        ("log { 2.1 { a: 1 } }", "events.conf: events.log 2: versions are quoted keys"),
        ('log { "2.x" {} }', "events.conf: events.log 2.x: versions are quoted keys"),
        ('log { "2.1": 5 }', "events.conf: events.log 2.1: must be an object"),
        ('log { "2.1" { requets {} } }', "events.conf: events.log 2.1: unknown key requets"),
        ('log { "2.1" { since: "3.0" } }', "events.conf: events.log 2.1: since: 3.0 is above the version itself"),
        ('log { "2.1" { since: 1.0 } }', "events.conf: events.log 2.1: since: 1.0 must be quoted"),
        ('log { "2.1" { since: soon } }', "events.conf: events.log 2.1: since: 'soon' is not a version"),
        ('log { "2.1" {}, "2.9" { since: "1.0" } }', "events.conf: events.log 2.9: since: must be above 2.1"),
        ('log { "2.1" { request { type: array } } }', "events.conf: events.log 2.1: request: must be of type object"),
        ("_definitions: 5", "events.conf: _definitions: must be an object"),
        ("_definitions { a { type: strnig } }", "events.conf: definition a: unknown type strnig"),
        ('b { "1.0" { batch_request: add } }', "events.conf: events.b 1.0: batch_request: must be an object"),
        (
            'b { "1.0" { batch_request { action: add, version: 1.0 } } }',
            "events.conf: events.b 1.0: batch_request: action: this file has no action add",
        ),
        (
            'b { "1.0" { batch_request { action: b, version: 1.0 } } }',
            "events.conf: events.b 1.0: batch_request: action: b does not take a single request",
        ),
        (
            'b { "1.0" { batch_request { action: [x], version: 1.0 } } }',
            "events.conf: events.b 1.0: batch_request: action: this file has no action ['x']",
        ),
        (
            'a { "1.0" {} }, b { "1.0" { batch_request { action: a } } }',
            "events.conf: events.b 1.0: batch_request: version: '' is not a version",
        ),
        (
            'log { "2.1" { request { type: object, properties { metrics { type: array, items {'
            " type: object, properties { m { type: x } } } } } } } }",
            "events.conf: events.log 2.1: request.metrics[].m: unknown type x",
        ),
        (
            'log { "2.1" { response { type: object, properties { a { type: x } } } } }',
            "events.conf: events.log 2.1: response.a: unknown type x",
        ),
    ],
)
def test_a_mistake_is_named_with_file_endpoint_and_field(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SchemaFileError) as mistake:
        load_schemas(write(tmp_path, events=text))
    assert str(mistake.value).startswith(message)


def test_text_that_is_not_utf8_is_a_mistake_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "events.conf").write_bytes(b"a: \xff")
    with pytest.raises(SchemaFileError, match=r"^events\.conf: "):
        load_schemas(tmp_path)


def test_a_folder_without_schemas_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(SchemaFileError, match="there are no schemas"):
        load_schemas(tmp_path)

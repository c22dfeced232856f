"""The pages' types of the API: they are as the schemas are now, and as their values are."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs import endpoints
from tests.rpc.apps import write

SHARED = "{ texts { type: array, items { type: string } }, item { type: object, properties { key { type: string } } } }"
RUNS = """
{
  _definitions {
    run {
      type: object
      required: [id]
      properties {
        id { type: string }
        status { type: string, enum: [created, failed] }
        tags { "$ref": "#/definitions/texts" }
        best { "$ref": "#/definitions/item", nullable: true }
        points { type: array, items { type: array, items { type: number, nullable: true } } }
        metrics { type: object, additionalProperties { "$ref": "#/definitions/item" } }
        runtime { type: object, additionalProperties: true }
      }
    }
    part { type: object, properties { n { type: integer } } }
  }
  get { "2.1" {
    request {
      type: object
      additionalProperties: true
      required: [id, n]
      properties {
        id { anyOf: [{ type: string }, { "$ref": "#/definitions/texts" }] }
        n { type: integer, default: 3 }
        wanted { description: "A text, or a list of them" }
      }
    }
    response { type: object, properties { runs { type: array, items { "$ref": "#/definitions/run" } } } }
  } }
  cut { "2.1" { request { "$ref": "#/definitions/part" } } }
  stop { "2.1" { description: "No page calls it" } }
}
"""
WORKERS = """
{
  _definitions { part { type: object, properties { name { type: string } } } }
  cut { "2.1" { request { "$ref": "#/definitions/part" }, response { type: object, properties { } } } }
}
"""
TYPES = """\
export interface Item {
  readonly key?: string;
}

export interface Run {
  readonly id: string;
  readonly status?: "created" | "failed";
  readonly tags?: readonly string[];
  readonly best?: Item | null;
  readonly points?: readonly (readonly (number | null)[])[];
  readonly metrics?: Readonly<Record<string, Item>>;
  readonly runtime?: Readonly<Record<string, unknown>>;
}

export interface RunsPart {
  readonly n?: number;
}

export interface WorkersPart {
  readonly name?: string;
}

/** By endpoint, the body of a request, and the `data` of the answer. */
export interface Endpoints {
  "runs.cut": {
    request: RunsPart;
    answer: Readonly<Record<string, unknown>>;
  };
  "runs.get": {
    request: {
      readonly id: string | readonly string[];
      readonly n?: number;
      readonly wanted?: unknown;
    } & Paths;
    answer: {
      readonly runs?: readonly Run[];
    };
  };
  "workers.cut": {
    request: WorkersPart;
    answer: Readonly<Record<string, never>>;
  };
}
"""


def test_they_are_as_the_schemas_are_now() -> None:
    assert endpoints.MODULE.read_text("utf-8") == endpoints.module(), "`python -m docs.endpoints` writes them anew"


@pytest.mark.test
def test_they_are_those_of_the_called_endpoints(tmp_path: Path) -> None:
    schemas = write(tmp_path / "schemas", _definitions=SHARED, runs=RUNS, workers=WORKERS)
    sources = tmp_path / "src"
    sources.mkdir()
    sources.joinpath("a.tsx").write_text('api("runs.get", {}); ["runs.cut", "workers.cut"]; "project.name"', "utf-8")
    assert endpoints.module(schemas, sources).endswith("}\n\n" + TYPES)

"""Requests that cost much a byte: Hypothesis grows them, and goes on with those that took most.

What a request costs is how many functions the server calls for it, of Python's and of C's: the same on every machine.
It may be in proportion to the bytes that were sent and answered. `EVENTS_EXAMPLES=2000` has it look longer.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings, target
from hypothesis import strategies as st

from apiserver.rpc.schema_bounds import Schema
from tests.harness import basic, running_api
from tests.services.generated import ENDPOINTS, ask

EXAMPLES = int(os.environ.get("EVENTS_EXAMPLES", "60"))
#: Calls that any request may cost, and those a byte of its body.
_ANY, _A_BYTE = 40_000, 40

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "a", "a.b.c", "*", "-name", "__$not", "(a|b)*c", ">=2026-01-01", "$where"]),
    st.text(max_size=20),
)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(st.text(max_size=8), inner, max_size=5)),
    max_leaves=20,
)
#: How often lists and maps are repeated, those of the request itself and those inside: what is quadratic shows.
TIMES = (st.sampled_from([1, 1, 3, 30, 300]), st.sampled_from([1, 3, 10]), st.just(1))


def values(schema: Schema, depth: int = 0) -> st.SearchStrategy[Any]:
    """Values of a schema, sometimes of another, and lists and maps that have many."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.one_of(*(values(choice, depth) for choice in schema["anyOf"]))
    match schema.get("type"):
        case "string":
            return st.one_of(st.sampled_from(["a", "a.b", "x" * 100]), st.text(max_size=30))
        case "integer":
            return st.integers(schema.get("minimum", -10), schema.get("maximum", 10_000))
        case "number":
            return st.floats(schema.get("minimum", -10), schema.get("maximum", 10_000))
        case "boolean":
            return st.booleans()
        case "array":
            items = st.lists(values(schema.get("items", {}), depth + 1), min_size=1, max_size=3)
            return st.builds(lambda some, times: some * times, items, TIMES[min(depth, 2)])
        case "object" if schema.get("properties"):
            return fields(schema, depth + 1)
        case "object":
            others = schema.get("additionalProperties")
            inner = values(others, depth + 1) if isinstance(others, dict) else ANYTHING
            return st.builds(lambda value, times: {f"n{n}": value for n in range(times)}, inner, TIMES[min(depth, 2)])
    return ANYTHING


def fields(schema: Schema, depth: int = 0) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with the required properties, and some of the others."""
    properties = {name: values(field, depth) for name, field in schema.get("properties", {}).items()}
    required = {name: properties.pop(name) for name in schema.get("required", ()) if name in properties}
    return st.fixed_dictionaries(required, optional=properties)


NEWEST = {endpoint.name: endpoint for endpoint in ENDPOINTS if "logout" not in endpoint.name}


@cache
def requests(name: str) -> st.SearchStrategy[dict[str, Any]]:
    return fields(NEWEST[name].item or NEWEST[name].request)


class Calls:
    """Counts the calls of functions in this thread."""

    def __init__(self) -> None:
        self.count = 0

    def note(self, frame: FrameType, event: str, argument: object) -> None:
        self.count += event in ("call", "c_call")


@contextmanager
def counted() -> Iterator[Calls]:
    """What is called inside."""
    calls, before = Calls(), sys.getprofile()
    sys.setprofile(calls.note)
    try:
        yield calls
    finally:
        sys.setprofile(before)


def test_no_request_costs_much_a_byte(tmp_path: Path) -> None:
    with asyncio.Runner() as runner:
        running = running_api(tmp_path / "data")
        api = runner.run(running.__aenter__())
        authorization = basic()

        @settings(
            max_examples=EXAMPLES,
            derandomize="EVENTS_EXAMPLES" not in os.environ,
            phases=(Phase.generate, Phase.target),  # to make a costly request smaller costs as much each time
            suppress_health_check=list(HealthCheck),
        )
        @given(st.data(), st.sampled_from(sorted(NEWEST)))
        def costs_little(data: st.DataObject, name: str) -> None:
            request = data.draw(requests(name))
            with counted() as calls:
                status, answer = runner.run(ask(api, NEWEST[name], request, authorization))
            size = len(json.dumps(request).encode()) + len(answer)
            target(calls.count / (size + _ANY / _A_BYTE), label="calls a byte")
            assert status != 500, (name, request, answer)
            assert calls.count <= _ANY + _A_BYTE * size, (name, status, calls.count, size, str(request)[:2000])

        try:
            costs_little()
        finally:
            runner.run(running.__aexit__(None, None, None))

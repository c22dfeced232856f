"""Schemas and handlers must fit each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from apiserver.rpc.registry import Registry
from apiserver.rpc.routes import build_routes, check
from apiserver.rpc.schema import SchemaFileError
from tests.rpc.apps import demo_registry, demo_table


async def handler(call: object, request: object) -> dict[str, object]:
    return {}


def test_what_fits_has_no_mismatch(tmp_path: Path) -> None:
    assert check(demo_table(tmp_path), demo_registry()) == []


def test_every_mismatch_is_listed(tmp_path: Path) -> None:
    registry = Registry()
    registry.endpoint("demo.echo", "2.1")(handler)
    registry.endpoint("demo.echo", "2.8")(handler)
    registry.endpoint("demo.add_batch", "1.0")(handler)
    registry.endpoint("other.thing", "1.0")(handler)
    mismatches = [
        "demo.echo 2.8 has a handler but no schema",
        "demo.echo 2.9 has a schema but no handler",
        "demo.echo_batch 1.0 has a schema but no handler",
        "demo.ping 1.0 has a schema but no handler",
        "other.thing 1.0 has a handler but no schema",
    ]
    assert check(demo_table(tmp_path), registry) == mismatches
    with pytest.raises(SchemaFileError) as error:
        build_routes(demo_table(tmp_path), registry)
    assert str(error.value).splitlines()[1:] == mismatches


def test_two_handlers_of_one_version_are_a_mistake() -> None:
    with pytest.raises(ValueError, match=r"demo\.ping 1\.0 has two handlers"):
        demo_registry().endpoint("demo.ping", "1.0")(handler)


def test_routes_ascend_by_floor_and_know_their_arrays(tmp_path: Path) -> None:
    routes = build_routes(demo_table(tmp_path), demo_registry())
    assert [str(route.since) for route in routes["demo.echo"]] == ["1.0", "2.9"]
    assert routes["demo.echo"][0].arrays == {"tags"}
    assert routes["demo.ping"][0].anonymous
    assert (routes["demo.add_batch"][0].raw, routes["demo.add_batch"][0].batch) == (True, False)
    assert (routes["demo.echo_batch"][0].raw, routes["demo.echo_batch"][0].batch) == (False, True)

"""The dispatcher's table: each endpoint version with its handler and its compiled validator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from apiserver.rpc.call import Handler
from apiserver.rpc.registry import Registration
from apiserver.rpc.schema import EndpointTable, EndpointVersion, SchemaFileError
from apiserver.rpc.validate import Validator, compile_request
from apiserver.rpc.versions import OLDEST, Version


@dataclass(frozen=True, slots=True)
class Route:
    """How one endpoint version is served."""

    since: Version
    handler: Handler
    anonymous: bool
    raw: bool
    batch: bool
    """Whether each line of the body is a request that is parsed here."""
    most_items: int | None
    """Most lines of a batch."""
    validate: Validator
    """Validates a request, or a line of a batch."""
    reads: bool
    """Whether the endpoint changes nothing."""
    arrays: frozenset[str]
    """Fields that are lists even if a query string names them only once."""


#: Endpoint name to its routes, ascending by `since`.
Routes = dict[str, tuple[Route, ...]]


def check(table: EndpointTable, registry: Iterable[Registration]) -> list[str]:
    """The endpoint versions that have a schema but no handler, or a handler but no schema, as sentences."""
    described = {(endpoint.name, str(endpoint.version)) for versions in table.values() for endpoint in versions}
    handled = {(handler.name, handler.version) for handler in registry}
    return sorted(
        [f"{name} {version} has a schema but no handler" for name, version in described - handled]
        + [f"{name} {version} has a handler but no schema" for name, version in handled - described]
    )


def build_routes(table: EndpointTable, registry: Iterable[Registration]) -> Routes:
    """The routes of a server; SchemaFileError lists every schema without handler and every handler without schema."""
    handlers = {(handler.name, handler.version): handler for handler in registry}
    if mismatches := check(table, handlers.values()):
        raise SchemaFileError("\n".join(["schemas and handlers do not match:", *mismatches]))
    return {
        name: tuple(_route(endpoint, handlers[name, str(endpoint.version)]) for endpoint in versions)
        for name, versions in table.items()
    }


def _route(endpoint: EndpointVersion, handler: Registration) -> Route:
    fields = endpoint.request.get("properties", {})
    return Route(
        since=endpoint.since,
        handler=handler.handler,
        anonymous=handler.anonymous,
        raw=handler.raw,
        batch=endpoint.item is not None and not handler.raw,
        most_items=endpoint.most_items,
        validate=compile_request(endpoint.item or endpoint.request),
        reads=endpoint.reads,
        arrays=frozenset(name for name, field in fields.items() if field.get("type") == "array"),
    )


def newest_at_most(routes: Sequence[Route], requested: Version) -> Route | None:
    """The newest of `routes` whose `since` is at most `requested`; the first if all are newer.

    `routes` ascend by `since`. None if there are none, or if `requested` is below OLDEST: ClearML's server answers
    404 to both, too.
    """
    if not routes or requested < OLDEST:
        return None
    for route in reversed(routes):
        if route.since <= requested:
            return route
    return routes[0]

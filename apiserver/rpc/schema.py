"""Reads the endpoint table from `schemas/*.conf`, the contract of the API, with one file for each service.

A file holds actions, an action holds versions, and a version holds the schemas of request and response. `_reads: true`
says that an action changes nothing, in any version.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from apiserver.rpc.hocon import HoconError, Tree, read_hocon
from apiserver.rpc.resolve import Resolver, SchemaFileError, as_object
from apiserver.rpc.schema_bounds import Schema, bounded
from apiserver.rpc.versions import Version

__all__ = ["EndpointTable", "EndpointVersion", "SchemaFileError", "load_schemas"]

#: The file with the definitions that all services share, by name.
SHARED_DEFINITIONS = "_definitions.conf"

_KEYS = {"description", "since", "internal", "request", "response", "batch_request"}
_NO_FIELDS: Schema = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class EndpointVersion:
    """One version of an endpoint, with resolved schemas."""

    name: str
    """`service.action`"""
    version: Version
    """The documented version: the key in the schema file, for which a handler registers."""
    since: Version
    """The oldest requested version that this one answers."""
    description: str
    request: Schema
    response: Schema
    item: Schema | None = None
    """The schema of one line, if the endpoint takes a batch (json-lines)."""
    most_items: int | None = None
    """Most lines of a batch; None if only the size of the body is limited."""
    internal: bool = False
    reads: bool = False
    """Whether the endpoint changes nothing: then guests may call it, and a link may call it with the cookie."""


#: Endpoint name to its versions, ascending.
EndpointTable = dict[str, tuple[EndpointVersion, ...]]


def load_schemas(folder: Path, cache: Path | None = None) -> EndpointTable:
    """The table of every `<service>.conf` in `folder`; the folder `cache` keeps the parsed forms."""
    shared_file = folder / SHARED_DEFINITIONS
    shared = _read(shared_file, cache) if shared_file.exists() else {}
    table: EndpointTable = {}
    for file in sorted(folder.glob("*.conf")):
        if file != shared_file:
            table.update(_endpoints(file, _read(file, cache), shared))
    if not table:
        raise SchemaFileError(f"{folder}: there are no schemas")
    return table


def _read(file: Path, cache: Path | None) -> Tree:
    try:
        return read_hocon(file, cache)
    except (HoconError, OSError, UnicodeDecodeError) as error:
        raise SchemaFileError(f"{file.name}: {error}") from error


def _endpoints(file: Path, tree: Tree, shared: Tree) -> Iterator[tuple[str, tuple[EndpointVersion, ...]]]:
    try:
        service = _Service(
            file.stem, tree, Resolver({**shared, **as_object(tree.get("_definitions", {}), "_definitions")})
        )
        yield from service.endpoints()
    except SchemaFileError as error:
        raise SchemaFileError(f"{file.name}: {error}") from None


class _Service:
    """Reads one service's file."""

    def __init__(self, name: str, tree: Tree, resolver: Resolver) -> None:
        self._name = name
        self._tree = tree
        self._resolver = resolver

    def endpoints(self) -> Iterator[tuple[str, tuple[EndpointVersion, ...]]]:
        self._resolver.check_definitions()
        for action in _own_keys(self._tree):
            yield f"{self._name}.{action}", self._versions(action)

    def _versions(self, action: str) -> tuple[EndpointVersion, ...]:
        where = f"{self._name}.{action}"
        content = as_object(self._tree[action], where)
        reads = content.get("_reads", False)
        if not isinstance(reads, bool):
            raise SchemaFileError(f"{where}: _reads: must be true or false")
        versions = sorted(
            (self._version(action, key, content[key], reads) for key in _own_keys(content)),
            key=lambda endpoint: endpoint.version,
        )
        if not versions:
            raise SchemaFileError(f"{where}: has no version")
        for older, newer in pairwise(versions):
            if newer.since <= older.since:
                raise SchemaFileError(
                    f"{where} {newer.version}: since: must be above {older.since}, where another begins"
                )
        return tuple(versions)

    def _version(self, action: str, key: str, content: Any, reads: bool) -> EndpointVersion:
        name, where = f"{self._name}.{action}", f"{self._name}.{action} {key}"
        version = _version_number(key, f'{where}: versions are quoted keys, such as "2.1"')
        content = as_object(content, where)
        if unknown := set(_own_keys(content)) - _KEYS:
            raise SchemaFileError(f"{where}: unknown key {min(unknown)}")
        since = self._since(content, version, where)
        return EndpointVersion(
            name,
            version,
            since,
            description=str(content.get("description", "")).strip(),
            request=self._request(content, where),
            response=self._resolver.resolve(content.get("response", {"type": "object"}), f"{where}: response"),
            item=self._item(content["batch_request"], where) if "batch_request" in content else None,
            most_items=self._most_items(content, where),
            internal=content.get("internal") is True,
            reads=reads,
        )

    def _since(self, content: Tree, version: Version, where: str) -> Version:
        text = content.get("since", str(version))
        if not isinstance(text, str):
            raise SchemaFileError(f"{where}: since: {text} must be quoted: as a number, 2.10 would be 2.1")
        since = _version_number(text, f"{where}: since")
        if since > version:
            raise SchemaFileError(f"{where}: since: {since} is above the version itself")
        return since

    def _request(self, content: Tree, where: str) -> Schema:
        request = self._resolver.resolve(content.get("request", _NO_FIELDS), f"{where}: request")
        if request.get("type") != "object":
            raise SchemaFileError(f"{where}: request: must be of type object")
        return bounded(request)

    def _most_items(self, content: Tree, where: str) -> int | None:
        most = content.get("batch_request", {}).get("maxItems")
        if most is not None and type(most) is not int:
            raise SchemaFileError(f"{where}: batch_request: maxItems must be a number, not {most}")
        return most

    def _item(self, batch: Any, where: str) -> Schema:
        """The schema of a batch's line: the request of the action named in `batch`.

        It is that of the action's newest version up to the named version, or of its oldest if all are newer.
        """
        where = f"{where}: batch_request"
        action = as_object(batch, where).get("action")
        if not isinstance(action, str) or action not in _own_keys(self._tree):
            raise SchemaFileError(f"{where}: action: this file has no action {action}")
        content = as_object(self._tree[action], where)
        wanted = _version_number(batch.get("version", ""), f"{where}: version")
        versions = sorted((_version_number(key, f"{where}: {action}"), key) for key in _own_keys(content))
        older = [key for version, key in versions if version <= wanted] or [key for _, key in versions[:1]]
        if not older or "batch_request" in (item := as_object(content[older[-1]], where)):
            raise SchemaFileError(f"{where}: action: {action} does not take a single request")
        return self._request(item, where)


def _own_keys(tree: Tree) -> list[str]:
    return [key for key in tree if not key.startswith("_")]


def _version_number(value: Any, where: str) -> Version:
    try:
        return Version.parse(str(value))
    except ValueError as error:
        raise SchemaFileError(f"{where}: {error}") from None

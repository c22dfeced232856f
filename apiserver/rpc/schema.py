"""The endpoint table, read from `schemas/*.conf`: THE contract of the API, one file a service.

A file holds actions, an action its versions by documented version, a version its request and response. `_reads: true`
says of an action that it changes nothing, in whatever version.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from apiserver.rpc.bounds import bounded
from apiserver.rpc.hocon import HoconError, Tree, read_hocon
from apiserver.rpc.resolve import Resolver, SchemaError
from apiserver.rpc.validate import Schema
from apiserver.rpc.versions import Version

__all__ = ["EndpointVersion", "SchemaError", "Table", "load_schemas"]

#: The file of definitions that all services share: its top-level keys are their names.
SHARED_DEFINITIONS = "_definitions.conf"

_KEYS = {"description", "since", "internal", "request", "response", "batch_request"}
_NO_FIELDS: Schema = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class EndpointVersion:
    """One version of an endpoint, with schemas in which nothing is left to look up."""

    name: str
    """`service.action`"""
    version: Version
    """The documented version: the key in the schema file, which handlers register for."""
    since: Version
    """The oldest version that it answers."""
    description: str
    request: Schema
    response: Schema
    item: Schema | None = None
    """Of a batch (json-lines): the schema of one line."""
    most_items: int | None = None
    """The most lines of a batch, if that is not for its size alone to say."""
    internal: bool = False
    reads: bool = False
    """It changes nothing: guests may call it, and a link may by the cookie."""


#: Endpoint name to its versions, ascending.
Table = dict[str, tuple[EndpointVersion, ...]]


def load_schemas(folder: Path, cache: Path | None = None) -> Table:
    """Read every `<service>.conf` of `folder`; parsed forms are kept in the folder `cache`."""
    shared_file = folder / SHARED_DEFINITIONS
    shared = _read(shared_file, cache) if shared_file.exists() else {}
    table: Table = {}
    for file in sorted(folder.glob("*.conf")):
        if file != shared_file:
            table.update(_endpoints(file, _read(file, cache), shared))
    if not table:
        raise SchemaError(f"{folder}: there are no schemas")
    return table


def _read(file: Path, cache: Path | None) -> Tree:
    try:
        return read_hocon(file, cache)
    except (HoconError, OSError, UnicodeDecodeError) as error:
        raise SchemaError(f"{file.name}: {error}") from error


def _endpoints(file: Path, tree: Tree, shared: Tree) -> Iterator[tuple[str, tuple[EndpointVersion, ...]]]:
    try:
        service = _Service(
            file.stem, tree, Resolver({**shared, **_object(tree.get("_definitions", {}), "_definitions")})
        )
        yield from service.endpoints()
    except SchemaError as error:
        raise SchemaError(f"{file.name}: {error}") from None


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
        content = _object(self._tree[action], where)
        reads = content.get("_reads", False)
        if not isinstance(reads, bool):
            raise SchemaError(f"{where}: _reads: must be true or false")
        versions = sorted(
            (self._version(action, key, content[key], reads) for key in _own_keys(content)), key=_by_version
        )
        if not versions:
            raise SchemaError(f"{where}: has no version")
        for older, newer in pairwise(versions):
            if newer.since <= older.since:
                raise SchemaError(f"{where} {newer.version}: since: must be above {older.since}, where another begins")
        return tuple(versions)

    def _version(self, action: str, key: str, content: Any, reads: bool) -> EndpointVersion:
        name, where = f"{self._name}.{action}", f"{self._name}.{action} {key}"
        version = _version_number(key, f'{where}: versions are quoted keys, such as "2.1"')
        content = _object(content, where)
        if unknown := set(_own_keys(content)) - _KEYS:
            raise SchemaError(f"{where}: unknown key {min(unknown)}")
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
            raise SchemaError(f"{where}: since: {text} must be quoted: as a number, 2.10 would be 2.1")
        since = _version_number(text, f"{where}: since")
        if since > version:
            raise SchemaError(f"{where}: since: {since} is above the version itself")
        return since

    def _request(self, content: Tree, where: str) -> Schema:
        request = self._resolver.resolve(content.get("request", _NO_FIELDS), f"{where}: request")
        if request.get("type") != "object":
            raise SchemaError(f"{where}: request: must be of type object")
        return bounded(request)

    def _most_items(self, content: Tree, where: str) -> int | None:
        most = content.get("batch_request", {}).get("maxItems")
        if most is not None and type(most) is not int:
            raise SchemaError(f"{where}: batch_request: maxItems must be a number, not {most}")
        return most

    def _item(self, batch: Any, where: str) -> Schema:
        """The request that each line of a batch is: that of the action's newest version up to the named, or oldest."""
        where = f"{where}: batch_request"
        action = _object(batch, where).get("action")
        if not isinstance(action, str) or action not in _own_keys(self._tree):
            raise SchemaError(f"{where}: action: {action} is no action of this file")
        content = _object(self._tree[action], where)
        wanted = _version_number(batch.get("version", ""), f"{where}: version")
        versions = sorted((_version_number(key, f"{where}: {action}"), key) for key in _own_keys(content))
        older = [key for version, key in versions if version <= wanted] or [key for _, key in versions[:1]]
        if not older or "batch_request" in (item := _object(content[older[-1]], where)):
            raise SchemaError(f"{where}: action: {action} takes no item")
        return self._request(item, where)


def _by_version(endpoint: EndpointVersion) -> Version:
    return endpoint.version


def _own_keys(tree: Tree) -> list[str]:
    return [key for key in tree if not key.startswith("_")]


def _object(value: Any, where: str) -> Tree:
    if not isinstance(value, dict):
        raise SchemaError(f"{where}: must be an object")
    return value


def _version_number(value: Any, where: str) -> Version:
    try:
        return Version.parse(str(value))
    except ValueError as error:
        raise SchemaError(f"{where}: {error}") from None

"""A server that speaks MongoDB's protocol, for tests: MongoDB itself, or a small one in Java."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pymongo import MongoClient

from tests.engines import jvm
from tests.engines.nodes import ForeignNode, Node, ProcessNode, container, first_available, listens
from tests.harness import free_ports

VARIABLE = "EVENTS_TEST_MONGODB_URL"


def node(folder: Path, *, durable: bool = False, quick: bool = False, lifeline: Path | None = None) -> Node:
    """A server that is not started yet; Unavailable when none can be had.

    durable: what was stored survives `stop`, in a file below `folder`; else it need not, which is faster.
    quick: it starts in less time, and is slower later. lifeline: what it ends with, if not this process.
    """
    return first_available([_named, lambda: _process(folder, durable, quick, lifeline), lambda: _container(lifeline)])


def address(url: str, database: str) -> str:
    """The setting `documents` of a server that keeps its documents at `url` (without options)."""
    return f"{url}/{database}"


def drop(url: str, database: str) -> None:
    """Delete a database, if it is there."""
    with MongoClient[dict[str, Any]](url) as client:
        client.drop_database(database)


def empty(url: str, database: str) -> None:
    """Delete all documents of a database; the schema stays."""
    with MongoClient[dict[str, Any]](url) as client:
        for collection in client[database].list_collection_names():
            if collection != "schema_steps":
                client[database][collection].delete_many({})


def _named() -> Node | None:
    url = os.environ.get(VARIABLE)
    return ForeignNode(url.rstrip("/"), listens) if url else None


def _process(folder: Path, durable: bool, quick: bool, lifeline: Path | None) -> Node:
    home = jvm.home("mongodb")
    [port] = free_ports(1)
    folder.mkdir(parents=True, exist_ok=True)
    java = jvm.java(home, "256m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", quick=quick)
    command = [*java, "MongoNode", str(port), *([str(folder / "data")] if durable else [])]
    return ProcessNode(f"mongodb://127.0.0.1:{port}", command, folder / "mongodb.log", listens, lifeline)


def _container(lifeline: Path | None) -> Node:
    return container("mongo:7", 27017, "mongodb", listens, lifeline=lifeline)

"""The engines that all tests of a run share: started when the first test asks for one, ended with the run.

Each process that runs tests has a prefix and a database of its own in them, and a test may have another one.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeVar
from uuid import uuid4

import pytest

from tests.engines import elasticsearch, mongodb, sharing
from tests.engines.nodes import Node, Unavailable
from tests.memory import in_memory

#: How long outages last at least; they last until clients were refused, anyway.
OUTAGE_SECONDS = float(os.environ.get("EVENTS_OUTAGE_SECONDS", "0"))
#: Of the node that all processes share.
_SHARED_HEAP = "1g"
#: Where a process of xdist is told the folder of its run, and where the process that started it keeps it.
_FOLDER, _RUN = "engines", pytest.StashKey[Path]()


class _Startable(Protocol):
    def start(self) -> None: ...

    def remove(self) -> None: ...


Engine = TypeVar("Engine", bound=_Startable)
NewPrefix = Callable[[], AbstractContextManager[str]]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Let a process of xdist, which is about to start, and all others share the engines of this run."""
    config: pytest.Config = node.config
    if _RUN not in config.stash:
        holding = ExitStack()
        config.stash[_RUN] = holding.enter_context(sharing.held())
        config.add_cleanup(holding.close)
    node.workerinput[_FOLDER] = str(config.stash[_RUN])


@pytest.fixture(scope="session")
def _run(pytestconfig: pytest.Config) -> Iterator[Path]:
    """The folder of the run, whose engines all its processes share."""
    folder = getattr(pytestconfig, "workerinput", {}).get(_FOLDER)
    with nullcontext(Path(folder)) if folder else sharing.held() as run:
        yield run


@pytest.fixture(scope="session")
def elasticsearch_url(_run: Path) -> str:
    """`http://127.0.0.1:PORT`"""
    with available("Elasticsearch", elasticsearch.VARIABLE):
        return sharing.url(
            _run,
            "elasticsearch",
            lambda folder, lifeline: elasticsearch.node(folder, _SHARED_HEAP, quick=True, lifeline=lifeline),
        )


@pytest.fixture(scope="session")
def mongodb_url(_run: Path) -> str:
    """`mongodb://127.0.0.1:PORT`"""
    with available("MongoDB", mongodb.VARIABLE):
        return sharing.url(
            _run, "mongodb", lambda folder, lifeline: mongodb.node(folder, quick=True, lifeline=lifeline)
        )


@pytest.fixture
def alone_on_engines(_run: Path) -> Iterator[None]:
    """For tests of names and settings that are the same for all: no other process runs such a test meanwhile."""
    with sharing.alone(_run, "names"):
        yield


@pytest.fixture
def elasticsearch_to_stop() -> Iterator[Node]:
    """A node of a test's own, to be stopped and killed."""
    with in_memory() as memory, tempfile.TemporaryDirectory(dir=memory, ignore_cleanup_errors=True) as folder:
        made = partial(elasticsearch.node, Path(folder), quick=True)
        for node in running("Elasticsearch", elasticsearch.VARIABLE, made):
            if not node.ours:
                pytest.skip(f"{node.url} is not ours to stop")
            yield node


@pytest.fixture
def elasticsearch_bare_prefix(elasticsearch_url: str) -> Iterator[str]:
    """What the names of a test's own indices and templates begin with; there is none yet, and they are deleted later.

    To set up a schema takes a node 0.3 seconds: only tests that change it, or look how it is made, take this.
    """
    with own_prefix(elasticsearch_url) as prefix:
        yield prefix


@pytest.fixture(scope="session")
def _kept_schema(elasticsearch_url: str) -> Iterator[_KeptSchema]:
    with _set_up(elasticsearch_url) as prefix:
        yield _KeptSchema(elasticsearch_url, prefix)


@pytest.fixture
def elasticsearch_new_prefix(_kept_schema: _KeptSchema) -> NewPrefix:
    """As `elasticsearch_prefix`, again and again: for each example of a property."""
    return _kept_schema.without_indices


@pytest.fixture
def elasticsearch_prefix(elasticsearch_new_prefix: NewPrefix) -> Iterator[str]:
    """What the names of a test's own indices begin with; they are deleted after it, and the templates stay."""
    with elasticsearch_new_prefix() as prefix:
        yield prefix


@pytest.fixture(scope="session")
def _set_up_prefix(elasticsearch_url: str) -> Iterator[str]:
    with _set_up(elasticsearch_url) as prefix:
        yield prefix


@pytest.fixture
def elasticsearch_shared_prefix(elasticsearch_url: str, _set_up_prefix: str) -> Iterator[str]:
    """As `elasticsearch_prefix`, for stores that only keep events: the schema stays from one test to the next.

    To set it up takes more time than most tests.
    """
    yield _set_up_prefix
    elasticsearch.empty(elasticsearch_url, _set_up_prefix)


@pytest.fixture
def mongodb_database(mongodb_url: str) -> Iterator[str]:
    """The name of a test's own database, dropped after it."""
    name = own_name()
    yield name
    mongodb.drop(mongodb_url, name)


@pytest.fixture
def engines(elasticsearch_url: str, mongodb_url: str) -> Iterator[dict[str, Any]]:
    """Settings for `running_api` and `served`: on both engines, where what is stored is deleted after the test."""
    with own_engines(elasticsearch_url, mongodb_url) as settings:
        yield settings


@pytest.fixture(scope="session")
def _set_up_database(mongodb_url: str) -> Iterator[str]:
    with _looked_at_once("apiserver.stores.documents.mongo.store", name := own_name()):
        yield name
    mongodb.drop(mongodb_url, name)


@pytest.fixture
def mongodb_shared_database(mongodb_url: str, _set_up_database: str) -> Iterator[str]:
    """As `mongodb_database`, for stores that only keep documents: the indexes stay from one test to the next."""
    yield _set_up_database
    mongodb.empty(mongodb_url, _set_up_database)


@pytest.fixture
def shared_engines(
    elasticsearch_url: str, elasticsearch_shared_prefix: str, mongodb_url: str, mongodb_shared_database: str
) -> dict[str, Any]:
    """As `engines`, for tests that leave the schemas alone: these stay, which takes a fifth of the time."""
    return settings_on(elasticsearch_url, mongodb_url, elasticsearch_shared_prefix, mongodb_shared_database)


@contextmanager
def own_engines(elasticsearch_url: str, mongodb_url: str) -> Iterator[dict[str, Any]]:
    """As the fixture `engines`, for as long as one likes."""
    name = own_name()
    yield settings_on(elasticsearch_url, mongodb_url, name)
    elasticsearch.remove(elasticsearch_url, name)
    mongodb.drop(mongodb_url, name)


def settings_on(elasticsearch_url: str, mongodb_url: str, name: str, database: str | None = None) -> dict[str, Any]:
    """The settings of a server on both engines. The names of its indices begin with `name`, and its database has it.

    database: if the database has another name.
    """
    return {
        "events": elasticsearch.address(elasticsearch_url, name),
        "documents": mongodb.address(mongodb_url, database or name),
        "migrate_at_start": True,
    }


@contextmanager
def own_nodes(folder: Path) -> Iterator[tuple[str, str]]:
    """The URLs of an Elasticsearch and a MongoDB that run, with their data below `folder`, for as long as one likes."""
    with ExitStack() as ending:
        nodes = (elasticsearch.node(folder / "elasticsearch"), mongodb.node(folder / "mongodb"))
        for node in nodes:
            ending.callback(node.remove)
            node.start()
        yield nodes[0].url, nodes[1].url


@contextmanager
def own_prefix(elasticsearch_url: str) -> Iterator[str]:
    """As the fixture `elasticsearch_prefix`, for as long as one likes: a failure leaves nothing to the next one."""
    prefix = own_name()
    try:
        yield prefix
    finally:
        elasticsearch.remove(elasticsearch_url, prefix)


@contextmanager
def _set_up(elasticsearch_url: str) -> Iterator[str]:
    """A prefix whose schema the first store sets up, and later ones do not look at."""
    with (
        own_prefix(elasticsearch_url) as prefix,
        _looked_at_once("apiserver.stores.events.elasticsearch.store", prefix),
    ):
        yield prefix


@dataclass(slots=True)
class _KeptSchema:
    """A prefix whose templates stay from one test to the next, while indices go."""

    url: str
    prefix: str
    templates: list[Any] = field(default_factory=list)
    """As they were after the first test that set them up."""

    @contextmanager
    def without_indices(self) -> Iterator[str]:
        try:
            yield self.prefix
        finally:
            elasticsearch.remove_indices(self.url, self.prefix, but=f"{self.prefix}-schema")
        templates = elasticsearch.templates(self.url, self.prefix)
        unchanged = templates == (self.templates or templates)
        assert unchanged, "a test that changes a schema takes elasticsearch_bare_prefix"
        self.templates = templates


@contextmanager
def _looked_at_once(store: str, name: str) -> Iterator[None]:
    """Have only the first store of this process look at the schema of a prefix or a database: it takes 15 requests.

    store: the module of the store.
    """
    module = import_module(store)
    check, looked = module.check_schema, False

    async def check_once(*asked: Any, migrate: bool) -> None:
        """asked: what the schema is asked by, and the prefix; or the database."""
        nonlocal looked
        is_shared = getattr(asked[-1], "name", asked[-1]) == name
        if not is_shared or not looked:
            await check(*asked, migrate=migrate)
        looked = looked or is_shared

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "check_schema", check_once)
        yield


def own_name() -> str:
    """A name that no other test has."""
    return f"test-{uuid4().hex[:12]}"


def running(engine: str, variable: str | None, made: Callable[[], Engine]) -> Iterator[Engine]:
    """The engine, started, then ended. The test is skipped when there is none.

    variable: of the environment, where one may name an engine that runs already.
    """
    with available(engine, variable):
        started = made()
    try:
        started.start()
        yield started
    finally:
        started.remove()


@contextmanager
def available(engine: str, variable: str | None) -> Iterator[None]:
    """Skips the test where the engine cannot be had."""
    try:
        yield
    except Unavailable as reason:
        others = f", or {variable}, or docker" if variable else ""
        pytest.skip(f"no {engine}: {reason}. A JDK 17 or later and Maven would help{others}")

"""Fixtures for every test: `api`, the whole server in this process, `server`, one in a process of its own, engines."""

from __future__ import annotations

import gc
import os
import random
import signal
import tempfile
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import chance, costs, memory, order, skips, tiers
from tests.hanging import Hanging

if TYPE_CHECKING:
    from apiserver.server.bounds import Bounds
    from tests.harness import Api, Served

pytest_plugins = ["tests.engines.fixtures", "tests.failing"]


def pytest_addoption(parser: pytest.Parser) -> None:
    tiers.add_option(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Before hypothesis looks for its options, and before anybody asks for a temporary folder."""
    chance.choose(config)
    memory.keep_temporary_folders()
    config.pluginmanager.register(Hanging())
    config.pluginmanager.register(tiers.Choice())
    config.pluginmanager.register(tiers.Guard())
    if skips.nothing_may_be_missing():
        config.pluginmanager.register(skips.Strict())
    if shuffled := order.chosen():
        config.pluginmanager.register(shuffled)
    if folder := os.environ.get("EVENTS_COSTS"):
        config.pluginmanager.register(costs.Costs(Path(folder)))
    # A shell that runs tests in the background has them ignore SIGINT, and so would all programs that they start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without looking for garbage, which takes half of the time, and never look at the tests for some."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_finish(session: pytest.Session) -> None:
    chance.import_all_that_examples_depend_on(session.items)


@pytest.fixture
def dice(request: pytest.FixtureRequest) -> random.Random:
    """Numbers of this test: the same each time, others when tests are to look elsewhere."""
    return random.Random(f"{request.node.nodeid} {chance.seed_of(request.config)}")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def api(request: pytest.FixtureRequest, _running: Api) -> AsyncIterator[Api]:
    """The whole server in this process, as the admin of a company sees it that only this test has.

    The tests of a module share the server. With the mark `own_api`, or with limits of its own (`bounds`), a test has a
    server of its own, and its first company.
    """
    from tests.harness import another_company

    if _has_own_api(request):
        yield _running
        return
    async with another_company(_running.app) as company:
        yield company


@pytest.fixture
def _running(request: pytest.FixtureRequest) -> Api:
    running: Api = request.getfixturevalue("_own_api" if _has_own_api(request) else "_shared_api")
    return running


@pytest.fixture
def bounds(request: pytest.FixtureRequest) -> Bounds | None:
    """The limits of the server of a test, as the test's mark says: `@pytest.mark.bounds(Bounds(…))`."""
    mark = request.node.get_closest_marker("bounds")
    return mark.args[0] if mark else None


@pytest.fixture
async def _own_api(tmp_path: Path, bounds: Bounds | None) -> AsyncIterator[Api]:
    from tests.harness import running_api

    async with running_api(tmp_path / "data", bounds) as running:
        yield running


@pytest.fixture(scope="module")
async def _shared_api() -> AsyncIterator[Api]:
    from tests.harness import running_api

    with tempfile.TemporaryDirectory() as folder:
        async with running_api(Path(folder, "data")) as running:
            yield running


def _has_own_api(request: pytest.FixtureRequest) -> bool:
    return any(request.node.get_closest_marker(name) for name in ("own_api", "bounds"))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    from tests.harness import served

    with served(tmp_path / "data") as running:
        yield running

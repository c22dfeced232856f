"""Fixtures for every test: `api`, the whole server in this process, `server`, one in a process of its own, engines."""

from __future__ import annotations

import gc
import os
import random
import signal
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import chance, costs, memory, order, skips, tiers
from tests.hanging import Hanging

if TYPE_CHECKING:
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


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    from tests.harness import running_api

    async with running_api(tmp_path / "data") as running:
        yield running


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    from tests.harness import served

    with served(tmp_path / "data") as running:
        yield running

"""Fixtures for every test: `api`, the whole server in this process, `server`, one in a process of its own, engines."""

from __future__ import annotations

import faulthandler
import gc
import os
import random
import signal
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import chance, costs, memory, order, skips, tiers

if TYPE_CHECKING:
    from tests.harness import Api, Served

pytest_plugins = ["tests.engines.fixtures"]

#: Seconds after which a test of `make longer` counts as hanging. pyproject.toml says it of the others.
_LONGER_HANGS = 3600


def pytest_addoption(parser: pytest.Parser) -> None:
    tiers.add_option(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Before hypothesis looks for its options, and before anybody asks for a temporary folder."""
    chance.choose(config)
    memory.keep_temporary_folders()
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Failures(config))
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


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give tests of `make longer` an hour until they count as hanging: on a busy machine, nodes start for minutes."""
    if tiers.of_item(item) == "longer" and item.config.getini("faulthandler_timeout"):
        from _pytest.faulthandler import fault_handler_stderr_fd_key  # here, as it is no public name

        stderr = item.config.stash[fault_handler_stderr_fd_key]
        faulthandler.dump_traceback_later(_LONGER_HANGS, file=stderr, exit=True)


class _Failures:
    """Tells of a failure when it happens, not only in the end: a run that is ended from outside shows what failed."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            crash = getattr(report.longrepr, "reprcrash", None)
            reason = str(crash.message if crash else report.longrepr).splitlines()
            terminal.write("\n")
            terminal.write_line(f"FAILED {report.nodeid} ({report.when}): {reason[0] if reason else ''}", red=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how to look at the same again."""
    if (seed := chance.seed_of(config)) is not None and terminalreporter.stats.get("failed"):
        terminalreporter.write_line(f"what was left to chance is the same with --hypothesis-seed={seed}")


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

"""What the end of a run says of failures: which tests failed, where their servers' logs are, and the seeds of the run.

A server's log lies beside its data, and stays until the next run if a test of the run failed.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest

from tests import chance, logs

#: Lines that the end of a run has for failures, so that a screen shows all of it.
_LINES = 15
_LOG = "log of a server"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """A test has to do with servers that run when it begins, and those that it starts."""
    logs.forget_ended()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Have the report of a failure carry the logs, also to the process that writes the end of the run."""
    report = yield
    if report.failed:
        report.user_properties = [*report.user_properties, *((_LOG, str(log)) for log in logs.there())]
    return report


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Told(config))


class _Told:
    """Tells of a failure when it happens, as a run may be ended from outside, and of all in the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            crash = getattr(report.longrepr, "reprcrash", None)
            reason = str(crash.message if crash else report.longrepr).splitlines()
            terminal.write("\n")
            terminal.write_line(f"FAILED {report.nodeid} ({report.when}): {reason[0] if reason else ''}", red=True)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None]:
        """Say, after all that others say, what failed and how to look at the same again."""
        yield
        failures = [report for kind in ("failed", "error") for report in terminalreporter.stats.get(kind, ())]
        if failures:
            terminalreporter.write_line("")
        for report in failures[:_LINES]:
            terminalreporter.write_line(_told(report), red=True)
        if len(failures) > _LINES:
            terminalreporter.write_line(f"and {len(failures) - _LINES} more, which are named above", red=True)
        if failures:
            terminalreporter.write_line(f"seeds: {', '.join(_seeds(self._config))}")


def _told(report: Any) -> str:
    """A line that names what failed, which may be a file that cannot be read for tests, and the logs of its servers."""
    written = [value for name, value in getattr(report, "user_properties", ()) if name == _LOG]
    return f"FAILED {report.nodeid}" + "".join(f", {_LOG}: {log}" for log in written)


def _seeds(config: pytest.Config) -> list[str]:
    """What shows the same again: the options and variables of the run."""
    seed, order = chance.seed_of(config), os.environ.get("EVENTS_ORDER")
    return [
        "--hypothesis-seed not given" if seed is None else f"--hypothesis-seed={seed}",
        "tests in the order of their files" if order is None else f"EVENTS_ORDER={order}",
    ]

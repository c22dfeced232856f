"""Tests that CI cannot run, each with its reason. Where nothing may be missing, any other skip is a failure.

REQUIRE_ENGINES=1 in the environment says that nothing may be missing, as `.ci/run` does.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

#: By the beginning of a test's id.
NOT_IN_CI = {
    "tests/deployment/test_compose.py::test_compose_takes_the_file": "no docker compose",
    "tests/deployment/test_compose.py::test_compose_wants_passwords_where_they_are_needed": "no docker compose",
}


def nothing_may_be_missing() -> bool:
    """Whether a test that cannot run fails."""
    return os.environ.get("REQUIRE_ENGINES") == "1"


class Strict:
    """A plugin of pytest: a skip that NOT_IN_CI does not name is a failure, of a test or of a whole module."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if not hasattr(report, "wasxfail"):
            _fail_if_skipped(report)
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        _fail_if_skipped(report)
        return report


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and not report.nodeid.startswith(tuple(NOT_IN_CI)):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"nothing may be left out here, and tests/skips.py does not name this test: {reason}"

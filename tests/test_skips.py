from __future__ import annotations

from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.skips import NOT_IN_CI, Strict


def judged(nodeid: str, *, skipped: bool = True, **more: Any) -> Any:
    """What becomes of the report of a test."""
    hook: Generator[None, Any, Any] = Strict().pytest_runtest_makereport()
    next(hook)
    outcome = "skipped" if skipped else "passed"
    with pytest.raises(StopIteration) as ended:
        hook.send(
            SimpleNamespace(nodeid=nodeid, skipped=skipped, outcome=outcome, longrepr=("f", 1, "no curl"), **more)
        )
    return ended.value.value


def test_a_skip_is_a_failure_with_its_reason() -> None:
    report = judged("tests/rpc/test_wire.py::test_curl")
    assert report.outcome == "failed"
    assert "no curl" in report.longrepr


@pytest.mark.parametrize("name", sorted(NOT_IN_CI))
def test_those_that_ci_cannot_run_are_skipped(name: str) -> None:
    assert judged(name).outcome == judged(f"{name}[parameter]").outcome == "skipped"


def test_what_passes_or_is_known_to_fail_stays() -> None:
    assert judged("tests/test_it.py::test", skipped=False).outcome == "passed"
    assert judged("tests/test_it.py::test", wasxfail="a bug").outcome == "skipped"

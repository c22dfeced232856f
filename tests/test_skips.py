from __future__ import annotations

from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.skips import NOT_IN_CI, Strict


def judged(nodeid: str, *, skipped: bool = True, collected: bool = False, **more: Any) -> Any:
    """What becomes of the report of a test, or of a module that is `collected`."""
    hooks = Strict()
    hook: Generator[None, Any, Any] = (
        hooks.pytest_make_collect_report() if collected else hooks.pytest_runtest_makereport()
    )
    next(hook)
    outcome = "skipped" if skipped else "passed"
    with pytest.raises(StopIteration) as ended:
        hook.send(
            SimpleNamespace(nodeid=nodeid, skipped=skipped, outcome=outcome, longrepr=("f", 1, "no curl"), **more)
        )
    return ended.value.value


@pytest.mark.parametrize(("nodeid", "collected"), [("tests/rpc/test_wire.py::test_curl", False), ("tests/x.py", True)])
def test_a_skip_is_a_failure_with_its_reason(nodeid: str, collected: bool) -> None:
    report = judged(nodeid, collected=collected)
    assert report.outcome == "failed"
    assert "no curl" in report.longrepr


@pytest.mark.parametrize("name", sorted(NOT_IN_CI))
def test_those_that_ci_cannot_run_are_skipped(name: str) -> None:
    assert judged(name).outcome == judged(f"{name}[parameter]").outcome == "skipped"


def test_what_passes_or_is_known_to_fail_stays() -> None:
    assert judged("tests/test_it.py::test", skipped=False).outcome == "passed"
    assert judged("tests/test_it.py::test", wasxfail="a bug").outcome == "skipped"

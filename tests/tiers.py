"""Which command runs a test: its tier.

    quick   `make quick`: in this process only; it starts no server, no other program, no browser, no engine
    test    `make test`, besides: servers and commands in processes of their own, the newest SDK, a browser, and what
            takes more than a tenth of a second of CPU
    check   `make check`, besides: engines, other programs, variations
    longer  `make longer`: what takes long and seldom finds anything; never in CI

A test has the highest tier of its marks, its folder (FOLDERS), what its fixtures start (FIXTURES), and the engines that
its parameters name (PARAMETERS). All others are `quick`. A test of `quick` that starts a process fails, and says so.
`pytest --tier check` runs the tests of one tier, and pytest alone all but `longer`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

TIERS = ("quick", "test", "check", "longer")

#: Of folders and modules below `tests`. The longest name counts.
FOLDERS = {
    "benchmarks": "check",
    "clients": "check",
    "clients/test_main_job.py": "test",
    "common/test_commit.py": "test",
    "contract": "test",
    "deployment": "check",
    "docs": "check",
    "engines": "check",
    "golden": "check",
    "hostile": "check",
    "http/test_certificate.py": "test",
    "operating/backup": "test",
    "operating/backup/test_s3.py": "check",
    "operating/backup/test_under_load.py": "check",
    "pages": "test",
    "robustness": "check",
    "server/test_processes.py": "test",
    "server/test_serve.py": "test",
    "server/test_signals.py": "check",
    "server/test_systemd.py": "check",
    "stores/events/blocks": "check",
    "stores/events/embedded/test_brute_force.py": "check",
    "stores/events/embedded/test_failing_calls.py": "check",
    "test_again.py": "check",
    "test_ending.py": "check",
    "test_failing.py": "check",
    "test_hanging.py": "check",
}
#: By what they start.
FIXTURES = {
    "server": "test",
    "browser": "test",
    "elasticsearch_to_stop": "check",
    "elasticsearch_url": "check",
    "mongodb_url": "check",
}

#: By a word of a parameter that names what a test runs on, such as `elasticsearch-compacted`.
PARAMETERS = {"elasticsearch": "check", "mongo": "check", "mongodb": "check", "engines": "check"}

#: What Python says of before a process is started. Forked servers are asked for by a socket with a name.
_STARTS = ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty")

_tests = Path(__file__).parent


def of_path(path: Path) -> str:
    """The tier of a folder or a module; `quick` if nothing is said of it."""
    if not path.is_relative_to(_tests):
        return TIERS[0]
    names = path.relative_to(_tests).parts
    beginnings = ("/".join(names[:count]) for count in range(len(names), 0, -1))
    return next((FOLDERS[beginning] for beginning in beginnings if beginning in FOLDERS), TIERS[0])


def of_item(item: pytest.Item) -> str:
    """The tier of a test."""
    marked = (tier for tier in TIERS if item.get_closest_marker(tier))
    started = (FIXTURES[name] for name in getattr(item, "fixturenames", ()) if name in FIXTURES)
    parameters = getattr(item, "callspec", None)
    words = re.split(r"\W+", parameters.id) if parameters else ()
    engines = (PARAMETERS[word] for word in words if word in PARAMETERS)
    return _highest([of_path(item.path), *marked, *started, *engines])


def _highest(tiers: Iterable[str]) -> str:
    return max(tiers, key=TIERS.index)


def add_option(parser: pytest.Parser) -> None:
    """`--tier quick --tier test`, or `--tier all`; without any, all that CI runs."""
    parser.addoption("--tier", action="append", choices=[*TIERS, "all"], help="run tests of this tier, and of no other")


def chosen(config: pytest.Config) -> tuple[str, ...]:
    """The tiers whose tests run."""
    named = config.getoption("--tier") or TIERS[:-1]
    return TIERS if "all" in named else tuple(named)


class Choice:
    """Leaves out tests of other tiers than those chosen."""

    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        """Import no module whose tests are all of a higher tier."""
        highest = TIERS.index(_highest(chosen(config)))
        return True if TIERS.index(of_path(collection_path)) > highest else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item], config: pytest.Config) -> None:
        tiers = chosen(config)
        others = [item for item in items if of_item(item) not in tiers]
        if others:
            config.hook.pytest_deselected(items=others)
            items[:] = [item for item in items if of_item(item) in tiers]


class Alone(RuntimeError):
    """A test of `quick` starts a process."""


class Guard:
    """Lets a test of `quick` start no process, as somebody waits for each of these tests after each change."""

    def __init__(self) -> None:
        self._watches = False
        sys.addaudithook(self._heard)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self._watches = of_item(item) == "quick"

    def pytest_runtest_logfinish(self) -> None:
        self._watches = False

    def _heard(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self._watches:
            return
        if event in _STARTS or (event == "socket.connect" and isinstance(arguments[1], str | bytes)):
            self._watches = False  # what shows the failure may start something
            raise Alone("this test starts a process: give it the mark `test` (or `check`), see tests/tiers.py")

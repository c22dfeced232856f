"""A test that hangs shows where, and is one failure among the others: xdist starts another process for the rest."""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Generator

import pytest

#: Seconds after which a test counts as hanging. Those of `make longer` start nodes, for minutes on a busy machine.
_HANGS, _LONGER_HANGS = 600, 3600


class Hanging:
    """Ends this process, with the stacks of all threads, when a test takes too long.

    Of all that pytest captures, these stacks are not: they go where standard error is when this is made.
    """

    def __init__(self, seconds: float = _HANGS, longer_seconds: float = _LONGER_HANGS) -> None:
        self._seconds, self._longer_seconds = seconds, longer_seconds
        self._errors = os.dup(2)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        seconds = self._longer_seconds if item.get_closest_marker("longer") else self._seconds
        faulthandler.dump_traceback_later(seconds, file=self._errors, exit=True)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()

    def pytest_unconfigure(self) -> None:
        os.close(self._errors)

"""Fixtures for every test: `api`, the whole server in this process, `server`, one in a process of its own, engines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.harness import Api, Served

pytest_plugins = ["tests.engines.fixtures"]

# No test says how fast this machine is.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")


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

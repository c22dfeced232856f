"""Stores for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.operating.retention.stores import Stores, stores_in


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[Stores]:
    async with stores_in(tmp_path / "data") as opened:
        yield opened

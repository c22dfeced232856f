"""The job that tests ask vendors' APIs about: on the embedded stores, and on Elasticsearch and MongoDB."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Api, running_api
from tests.vendors.reported import Reported, two_machines


@pytest.fixture
async def job(api: Api) -> Reported:
    """`two_machines` on the embedded stores."""
    return await two_machines(api)


@pytest.fixture(params=["embedded", pytest.param("engines", marks=pytest.mark.check)])
async def job_anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Reported]:
    """`two_machines` on each kind of stores."""
    settings: dict[str, Any] = {} if request.param == "embedded" else request.getfixturevalue("shared_engines")
    async with running_api(tmp_path / "data", **settings) as api:
        yield await two_machines(api)

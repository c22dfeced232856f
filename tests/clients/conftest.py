"""The real SDK against a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.sdk import Sdk, sdk_of
from tests.harness import Served, served


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    """The server on its embedded stores, or, as the indirect parameter "engines", on Elasticsearch and MongoDB."""
    on_engines = getattr(request, "param", "embedded") == "engines"
    with served(tmp_path / "data", **(request.getfixturevalue("shared_engines") if on_engines else {})) as running:
        yield running


@pytest.fixture
def sdk(request: pytest.FixtureRequest, tmp_path: Path, server: Served) -> Sdk:
    """The SDK sends at once, or, with the indirect parameter "as installed", as it does for users."""
    home = tmp_path / "home"
    home.mkdir()
    return sdk_of(server, home, as_installed=getattr(request, "param", "") == "as installed")

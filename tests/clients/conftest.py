"""The real SDK against a real server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from apiserver.client_configuration import ClientConfiguration
from tests.clients.sdk import Sdk, clients_python
from tests.harness import Served, served


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    """The server on its embedded stores, or, as the indirect parameter "engines", on Elasticsearch and MongoDB."""
    on_engines = getattr(request, "param", "embedded") == "engines"
    with served(tmp_path / "data", **(request.getfixturevalue("engines") if on_engines else {})) as running:
        yield running


@pytest.fixture
def sdk(tmp_path: Path, server: Served) -> Sdk:
    python = clients_python()
    if python is None:
        if os.environ.get("REQUIRE_ENGINES") == "1":
            pytest.fail("no clearml package: `make test` installs it, or set CLIENTS_PYTHON")
        pytest.skip("no clearml package: `make test` installs it, or set CLIENTS_PYTHON")
    home = tmp_path / "home"
    home.mkdir()
    return Sdk(python, home, ClientConfiguration(server.api_url, server.files_url, server.key, server.secret))

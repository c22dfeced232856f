"""The real SDK against a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.sdk import Sdk, sdk_of
from tests.engines import elasticsearch
from tests.engines.nodes import Node
from tests.harness import Served, served


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    """The server on its embedded stores, or, as the indirect parameter "engines", on Elasticsearch and MongoDB.

    "engines to stop": the events on `elasticsearch_to_stop`.
    """
    stores = getattr(request, "param", "embedded")
    settings: dict[str, Any] = {} if stores == "embedded" else request.getfixturevalue("shared_engines")
    if stores == "engines to stop":
        node: Node = request.getfixturevalue("elasticsearch_to_stop")
        settings = {**settings, "events": elasticsearch.address(node.url, "events")}
    with served(tmp_path / "data", **settings) as running:
        yield running


@pytest.fixture
def sdk(request: pytest.FixtureRequest, tmp_path: Path, server: Served) -> Sdk:
    """The SDK sends at once, or, with the indirect parameter "as installed", as it does for users."""
    home = tmp_path / "home"
    home.mkdir()
    return sdk_of(server, home, as_installed=getattr(request, "param", "") == "as installed")

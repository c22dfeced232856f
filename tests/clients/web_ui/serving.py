"""The servers that the web UI is shown on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.engines.fixtures import own_engines
from tests.harness import Served, served

#: Where the UI is served from: another origin than the server's.
ORIGIN = "http://ui.example:8080"


@pytest.fixture(scope="module", params=["embedded", "engines"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """On its embedded stores, then on Elasticsearch and MongoDB."""
    with ExitStack() as running:
        engines = {}
        if request.param == "engines":
            urls = [request.getfixturevalue(f"{name}_url") for name in ("elasticsearch", "mongodb")]
            engines = running.enter_context(own_engines(*urls))
        data = tmp_path_factory.mktemp("web-ui") / "data"
        yield running.enter_context(served(data, allowed_origins=ORIGIN, **engines))

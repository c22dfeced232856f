"""The servers that are attacked: embedded, two workers on Elasticsearch and MongoDB, and one behind nginx.

Each module has its own. The short form attacks the embedded server with everything and the others with the worst of
each kind; `EVENTS_HOSTILE=long` attacks all of them with everything, and by more clients.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from tests.deployment.gateway import gateway
from tests.engines.fixtures import own_engines
from tests.harness import served
from tests.hostile.target import Target

LONG = os.environ.get("EVENTS_HOSTILE") == "long"
#: How many clients send the same at once.
TOGETHER = 16 if LONG else 4
#: For how long they do what is slow.
SECONDS = 10.0 if LONG else 1.5

PLACES = ["embedded", "two workers", "nginx"]


@pytest.fixture(scope="module", params=PLACES if LONG else PLACES[:1])
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A running server to attack with everything."""
    with place(request, tmp_path_factory) as target:
        yield target


@pytest.fixture(scope="module", params=PLACES[1:])
def elsewhere(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A running server to attack with the worst; not the embedded one alone."""
    with place(request, tmp_path_factory) as target:
        yield target


@contextmanager
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, **settings: Any
) -> Iterator[Target]:
    """The running server that the parameter of a fixture names; `settings` are fields of Settings."""
    data = tmp_path_factory.mktemp("hostile") / "data"
    with ExitStack() as running:
        server = running.enter_context(served(data, **settings, **_settings(request, running)))
        target = Target(server, server.port, server.files_port)
        if request.param == "nginx":
            target.port, target.files_port = running.enter_context(gateway(data.parent, [server, server]))
            target.through_proxy = True
        target.settle()
        yield target
        assert server.stop() == 0


def _settings(request: pytest.FixtureRequest, running: ExitStack) -> dict[str, Any]:
    if request.param != "two workers":
        return {}
    urls = request.getfixturevalue("elasticsearch_url"), request.getfixturevalue("mongodb_url")
    return {**running.enter_context(own_engines(*urls)), "workers": 2}

"""Connections are served on the event loop of the server, with TLS and without."""

from __future__ import annotations

import pytest

from tests.http.protocol.serving import SPOKEN


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


@pytest.fixture(autouse=True, params=["http", "https"])
def spoken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tests are done with and without TLS."""
    monkeypatch.setitem(SPOKEN, "by TLS", request.param == "https")

"""The two ways of reading a body: what holds for one holds for the other."""

from __future__ import annotations

import pytest

from apiserver.events import scan


@pytest.fixture(params=["decoder", "scanner"])
def way_of_reading(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies are read with or without the compiled scanner."""
    if request.param == "decoder":
        monkeypatch.setattr(scan, "scanner", None)
    else:
        require_scanner()


def require_scanner() -> None:
    """Skip the test when the compiled scanner is not installed."""
    if scan.scanner is None:
        pytest.skip("the compiled scanner is not installed (`make accelerator`)")

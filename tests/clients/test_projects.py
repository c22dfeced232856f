"""The real SDK in projects whose names are not written as they are kept."""

from __future__ import annotations

from tests.clients.sdk import Sdk


def test_spare_slashes_and_blanks_stop_no_run(sdk: Sdk) -> None:
    seen = sdk.run("spare_slashes.py")
    assert seen["projects"] == ["slashes/x", "slashes/y", "slashes/z", "slashes/w"]
    assert seen["same"]
    assert seen["moved"] == [True, "moved/there"]
    assert seen["found"] == [2, 2, 2, 2]

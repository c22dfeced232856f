"""The real SDK against a server that speaks TLS."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.certificates import lasting_pair
from tests.clients.sdk import sdk_of
from tests.harness import served


def test_a_run_is_logged_and_read_back_by_tls(tmp_path: Path) -> None:
    home, pair = tmp_path / "home", lasting_pair()
    home.mkdir()
    with served(tmp_path / "data", **pair.settings) as server:
        assert server.api_url.startswith("https://")
        sdk = sdk_of(server, home)
        trusts = {"REQUESTS_CA_BUNDLE": str(pair.certificate)}
        run = sdk.finish(sdk.start("train.py", **trusts))
        seen = sdk.finish(sdk.start("read_back.py", run["task"], run["model"], **trusts))
    assert seen["status"] == "completed"
    assert seen["scalars"]["loss"] == {"train": 500, "val": 500}
    assert seen["loss"]["y"] == pytest.approx([1.0 / (n + 1) for n in range(500)])
    assert seen["artifact"] == {"answer": 42}
    assert seen["weights"] == 7000

"""The real SDK waits when its user sends too fast, and everything arrives once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from apiserver.setting_values import Quota
from tests.clients.sdk import Sdk
from tests.clients.test_heavy import assert_all_arrived_once
from tests.harness import Served, served


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "data", quotas=(Quota("user", events_per_second=300),)) as running:
        yield running


def test_a_run_that_sends_too_fast_waits_and_loses_nothing(sdk: Sdk, server: Served) -> None:
    run = sdk.run("heavy.py", "8000", "80")
    with server.client() as client:
        numbers = client.get("/metrics").text
    refusals = re.search(r"^apiserver_quota_refusals_total (\d+)", numbers, re.MULTILINE)
    assert refusals is not None
    assert int(refusals[1]) > 0
    assert_all_arrived_once(server, run["task"], 8000, 80)

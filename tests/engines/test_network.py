"""Networks and nodes that fail in the middle of a request: what clients are answered is true, and all goes on after.

Two servers reach an engine by a proxy, which does one fault after another to a share of their requests, while many
clients call (`tests/robustness/history`). `EVENTS_OUTAGE_SECONDS=40` lets each fault last for longer.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.engines import elasticsearch, mongodb
from tests.engines.fixtures import OUTAGE_SECONDS, own_engines
from tests.engines.proxy import Fault, Proxy, ReadRequest, http_request, mongodb_request
from tests.harness import served, wait_until
from tests.robustness.history.operations import History
from tests.robustness.history.rounds import Counted, run_round, wait_for

#: How many requests have each fault at least.
HITS = 5
_CALLS = 30
_OF_HTTP = (Fault.BUSY, Fault.AWAY)


@dataclass
class Faults:
    """One fault after another, for one request in three; then none."""

    proxy: Proxy
    faults: Sequence[Fault]

    def __call__(self, history: History) -> None:
        wait_for(history, _CALLS)
        for fault in self.faults:
            goal, began = self.proxy.hits[fault] + HITS, time.monotonic()
            self.proxy.set(fault, 1 / 3)
            wait_until(lambda: self.proxy.hits[fault] >= goal)  # noqa: B023 - it is called at once
            if fault is not Fault.STALL:
                wait_for(history, _CALLS)
            wait_until(lambda: time.monotonic() - began > OUTAGE_SECONDS)  # noqa: B023
            self.proxy.set(None)
            wait_for(history, _CALLS)


@pytest.fixture(params=["elasticsearch", "mongodb"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def proxy(engine: str, elasticsearch_url: str, mongodb_url: str, dice: random.Random) -> Iterator[Proxy]:
    """A proxy before the engine."""
    readers: dict[str, tuple[str, ReadRequest]] = {
        "elasticsearch": (elasticsearch_url, http_request),
        "mongodb": (mongodb_url, mongodb_request),
    }
    url, read_request = readers[engine]
    with Proxy(int(url.rpartition(":")[2]), read_request, dice.randrange(2**32)).running() as proxy:
        yield proxy


def test_clients_are_told_the_truth_over_a_bad_network(
    tmp_path: Path, engine: str, proxy: Proxy, elasticsearch_url: str, mongodb_url: str, dice: random.Random
) -> None:
    counted = Counted()
    faults = [fault for fault in Fault if engine == "elasticsearch" or fault not in _OF_HTTP]
    with own_engines(elasticsearch_url, mongodb_url) as engines, ExitStack() as running:
        setting, address = {
            "elasticsearch": ("events", elasticsearch.address),
            "mongodb": ("documents", mongodb.address),
        }[engine]
        name = engines[setting].rpartition("/")[2]
        scheme = "http" if engine == "elasticsearch" else "mongodb"
        engines[setting] = address(f"{scheme}://127.0.0.1:{proxy.port}", name)
        servers = {
            consistency: running.enter_context(served(tmp_path / consistency, consistency=consistency, **engines))
            for consistency in ("session", "strict")
        }
        run_round(servers, ["strict"], dice, counted, Faults(proxy, faults))
        assert counted.wrong == []
        for server in servers.values():
            assert "Traceback" not in server.log.read_text()
    assert counted.answers[503] > 0

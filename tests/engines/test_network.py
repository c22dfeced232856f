"""Networks and nodes that fail in the middle of a request: what clients are answered is true, and all goes on after.

Two servers reach an engine by a proxy, which does one fault after another to a share of their requests, while many
clients call (`tests/robustness/history`). `EVENTS_OUTAGE_SECONDS=40` lets each fault last for longer.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.engines.fixtures import OUTAGE_SECONDS, own_engines
from tests.engines.proxy import Fault, Proxy, http_request, mongodb_request
from tests.harness import served, wait_until
from tests.longer import beyond
from tests.robustness.history.operations import History
from tests.robustness.history.rounds import Counted, run_round, wait_for

#: How many requests have each fault at least.
HITS = 2
_CALLS = 15
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


def over_a_bad_network(folder: Path, engine: str, urls: tuple[str, str], dice: random.Random) -> tuple[Counted, Proxy]:
    """What clients were answered by two servers, and the faults that there were between these and an engine.

    engine: "elasticsearch" or "mongodb". urls: of both.
    """
    url, read_request = (urls[0], http_request) if engine == "elasticsearch" else (urls[1], mongodb_request)
    faults = [fault for fault in Fault if engine == "elasticsearch" or fault not in _OF_HTTP]
    counted = Counted()
    with (
        Proxy(int(url.rpartition(":")[2]), read_request, dice.randrange(2**32)).running() as proxy,
        own_engines(*urls) as engines,
        ExitStack() as running,
    ):
        setting = "events" if engine == "elasticsearch" else "documents"
        engines[setting] = f"{engine}://127.0.0.1:{proxy.port}/{engines[setting].rpartition('/')[2]}"
        servers = {
            consistency: running.enter_context(served(folder / consistency, consistency=consistency, **engines))
            for consistency in ("session", "strict")
        }
        run_round(servers, dice, counted, Faults(proxy, faults))
        for server in servers.values():
            assert "Traceback" not in server.log.read_text()
    return counted, proxy


@pytest.mark.parametrize("engine", beyond(["elasticsearch"], ["elasticsearch", "mongodb"]))
def test_clients_are_told_the_truth_over_a_bad_network(
    tmp_path: Path, engine: str, elasticsearch_url: str, mongodb_url: str, dice: random.Random
) -> None:
    counted, proxy = over_a_bad_network(tmp_path, engine, (elasticsearch_url, mongodb_url), dice)
    assert counted.wrong == []
    assert sum(proxy.hits.values()) >= HITS

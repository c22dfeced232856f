"""Clocks that jump while a server runs, and clocks of two servers that disagree: nothing is lost, and nothing waits."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from tests.data.streams import events_of
from tests.harness import PATIENCE, Served, bearer, served
from tests.robustness.clocks import DAY, HOUR, SECOND, Clock, clock
from tests.robustness.history.operations import History
from tests.robustness.history.rounds import STRICT, Counted, run_round, wait_for
from tests.robustness.writers import new_task

#: How far the clock is ahead, one after another: back an hour, a day ahead, right, and back a second again and again.
JUMPS = (-HOUR, DAY, 0, *(-SECOND * n for n in range(1, 6)))
_CALLS = 15


@dataclass
class Jumps:
    """Sets clocks while clients call, and kills a server now and then, so that it starts with a wrong clock."""

    clocks: Sequence[Clock]
    servers: Sequence[Served]
    dice: random.Random
    jumps: Sequence[float] = JUMPS

    def __call__(self, history: History) -> None:
        for number, ahead in enumerate(self.jumps):
            wait_for(history, _CALLS)
            self.dice.choice(self.clocks).set_ahead(ahead)
            if number % 4 == 1:
                server = self.dice.choice(self.servers)
                server.kill()
                server.start()
        wait_for(history, _CALLS)


def test_a_clock_that_jumps_costs_nothing_that_was_acknowledged(tmp_path: Path, dice: random.Random) -> None:
    jumping, counted = clock(tmp_path, "jumping"), Counted()
    with served(tmp_path / "data", variables=jumping.environment, merge_events=500) as server:
        run_round({STRICT: server}, dice, counted, Jumps([jumping], [server], dice))
        assert counted.wrong == []
        assert "Traceback" not in server.log.read_text()


def test_tokens_and_live_streams_go_on_when_the_clock_is_set_back(tmp_path: Path) -> None:
    jumping = clock(tmp_path, "jumping")
    with served(tmp_path / "data", variables=jumping.environment) as server:
        headers, task = bearer(server.call("auth.login")["token"]), new_task(server)
        with server.client() as client, client.stream("GET", "/data/live", params={"task": task}) as answer:
            told = events_of(answer.iter_lines())
            for n, ahead in enumerate((0, -HOUR, -HOUR - SECOND, HOUR / 2, -HOUR)):
                jumping.set_ahead(ahead)
                scalar = {"type": "training_stats_scalar", "task": task, "metric": "m", "variant": "v"}
                asked: dict[str, Any] = {**scalar, "iter": 0, "value": n}
                created = server.call("tasks.get_by_id", {"task": new_task(server)})["task"]["created"]
                assert abs(datetime.fromisoformat(created).timestamp() - time.time() - ahead) < HOUR / 4
                sent = httpx.post(f"{server.api_url}/events.add", json=asked, headers=headers, timeout=PATIENCE)
                assert sent.status_code == 200, sent.text
                while next(told).event != "scalars":
                    pass
                curve = server.call("events.scalar_metrics_iter_histogram", {"task": task})
                assert curve["m"]["v"]["y"] == [n], "the point that came last counts, whatever the clock says"


def test_servers_whose_clocks_disagree_lose_nothing(
    tmp_path: Path, engines: dict[str, Any], dice: random.Random
) -> None:
    clocks, counted = [clock(tmp_path, name) for name in ("one", "other")], Counted()
    clocks[0].set_ahead(5 * 60)
    with ExitStack() as running:
        servers = {
            name: running.enter_context(served(tmp_path / name, variables=one.environment, consistency=name, **engines))
            for name, one in zip(("session", "strict"), clocks, strict=True)
        }
        jumps = Jumps(clocks, [*servers.values()], dice, [-5 * 60, HOUR, DAY, 0])
        # A server whose clock is ahead takes the hold of a model that the other one deletes for one that has ended.
        run_round(servers, dice, counted, jumps, models=0)
        assert counted.wrong == []
        for server in servers.values():
            assert "Traceback" not in server.log.read_text()

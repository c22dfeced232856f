"""`--workers`: several processes on the same ports, where both stores are engines."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.harness import PATIENCE, Served, free_ports, served, told_to_stop_under_way, wait_until


def workers(server: Served) -> list[int]:
    assert server.process is not None
    pid = server.process.pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_several_processes_serve_as_one(tmp_path: Path, engines: dict[str, Any]) -> None:
    with served(tmp_path / "data", **engines, workers=2, admin_key="", admin_secret="") as server:
        conf = (tmp_path / "data" / "clearml.conf").read_text()
        [(server.key, server.secret)] = re.findall(r'"access_key" = "(\S+)"\s+"secret_key" = "(\S+)"', conf)
        wait_until(lambda: len(workers(server)) == 2)
        first, second = workers(server)

        task = server.call("tasks.create", {"name": "t", "type": "training"})["id"]
        for iter in range(10):
            event = {"type": "training_stats_scalar", "metric": "m", "variant": "v", "iter": iter, "value": iter}
            server.call("events.add", {"task": task, **event})

        os.kill(first, signal.SIGKILL)
        for _ in range(10):
            with server.client() as client:
                assert client.get("/health").status_code == 200
                assert client.get(f"{server.files_url}/nothing").status_code == 404
        wait_until(lambda: len(workers(server)) == 2 and first not in workers(server))
        assert second in workers(server)

        def points() -> list[int]:
            found = server.call("events.scalar_metrics_iter_histogram", {"task": task})
            x: list[int] = found.get("m", {}).get("v", {}).get("x", [])
            return x

        wait_until(lambda: points() == list(range(10)))  # of both processes
        ended = workers(server)
        assert told_to_stop_under_way(server) == 200
        assert server.process is not None
        assert server.process.wait(PATIENCE) == 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in ended)
        assert "Traceback" not in server.log.read_text()


def test_a_first_worker_that_cannot_start_is_told(tmp_path: Path, engines: dict[str, Any]) -> None:
    port, files_port = free_ports(2)
    fields = {**engines, "migrate_at_start": "false", "workers": 2, "port": port, "files_port": files_port}
    ended = subprocess.run(
        [sys.executable, "-m", "apiserver", "serve", "--data", str(tmp_path / "data")],
        env={**os.environ, **{f"APISERVER_{name.upper()}": str(value) for name, value in fields.items()}},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 1
    assert "has no schema yet: run `apiserver migrate`" in ended.stderr
    assert ended.stderr.splitlines()[-1] == "apiserver: the first worker did not start"
    assert "Traceback" not in ended.stderr

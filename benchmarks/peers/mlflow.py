"""MLflow's tracking server with SQLite, as `mlflow server` starts it: log-batch, get-history-bulk-interval."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import statistics
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

from benchmarks.client import Connection, RequestFailed
from benchmarks.figures import MLFLOW
from benchmarks.processes import cpu_seconds, family, family_mb, median_ms
from benchmarks.run import Run
from benchmarks.sender import Sending, Sent, send
from tests.harness import free_ports, wait_until

_API = "api/2.0/mlflow"
_READ = "ajax-api/2.0/mlflow/metrics/get-history-bulk-interval"
_LOG_BATCH = f"{_API}/runs/log-batch"
_JSON = {"Content-Type": "application/json"}
#: The most points that MLflow takes in a batch, and the most that it answers of a series.
_BATCH, _MOST_POINTS = 1000, 2500
_SERIES = 10
_CLIENTS, _SHORT, _SMALL = 8, 100, 10
#: MLflow's default is four workers, which need twice the memory.
_WORKERS = 2
_OPTIONS = ("--workers", str(_WORKERS), "--uvicorn-opts", "--timeout-worker-healthcheck 120 --log-level warning")
ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
}


def measure(run: Run, programs: Path) -> None:
    """Measure writing, reading, disk, memory and start."""
    folder = run.folder / "mlflow"
    folder.mkdir()
    with served(folder, programs):
        pass  # the first start makes the database
    started = time.perf_counter()
    with served(folder, programs) as (pid, port):
        run.table.compare("start", {f"{MLFLOW}, on a database that it has made": (time.perf_counter() - started) * 1e3})
        run.table.compare("memory.idle", {f"{MLFLOW}, {_WORKERS} workers": family_mb(pid)})
        _measure_writing(run, pid, port)
        _measure_reading(run, folder, port)


@contextlib.contextmanager
def served(folder: Path, programs: Path) -> Iterator[tuple[int, int]]:
    """A server with its database in a folder: the id of the server's process, and its port."""
    port = free_ports(1)[0]
    database = f"sqlite:///{folder}/mlflow.db"
    with open(folder / "log", "ab") as log:
        process = subprocess.Popen(
            [programs / "mlflow", "server", "--backend-store-uri", database, "--port", str(port), *_OPTIONS],
            cwd=folder,
            env={**os.environ, **ENVIRONMENT, "PATH": f"{programs}:{os.environ['PATH']}"},
            stdout=log,
            stderr=log,
        )
    try:
        wait_until(lambda: _is_well(port), 180)
        yield process.pid, port
    finally:
        left = family(process.pid)[1:]
        process.terminate()
        process.wait(60)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def _connected(port: int) -> Iterator[Connection]:
    with contextlib.closing(Connection(port, _JSON)) as connection:
        yield connection


def _is_well(port: int) -> bool:
    with contextlib.suppress(ConnectionError, RequestFailed), _connected(port) as connection:
        return bool(connection.get("health"))
    return False


def _new_run(port: int) -> str:
    with _connected(port) as connection:
        made = connection.call(f"{_API}/runs/create", {"experiment_id": "0"})
    return str(made["run"]["info"]["run_id"])


def _send(port: int, runs: list[str], batch: int, count: int) -> Sent:
    return send([Sending(port, _JSON, _LOG_BATCH, "metrics", one, batch, count) for one in runs])


def _measure_writing(run: Run, pid: int, port: int) -> None:
    sizes, table = run.sizes, run.table
    _send(port, [_new_run(port)], _BATCH, 2)
    events = sizes.peer_bodies * _BATCH
    before = cpu_seconds(pid)
    sent = _send(port, [_new_run(port)], _BATCH, sizes.peer_bodies)
    table.compare("write.cpu", {MLFLOW: (cpu_seconds(pid) - before) / events * 1e9})
    table.compare("write.rate", {f"{MLFLOW}, 1000 a batch": events / sent.seconds})
    sent = _send(port, [_new_run(port)], _SMALL, sizes.small_bodies // 5 + 1)
    table.compare("write.small", {MLFLOW: statistics.median(sent.latencies) * 1e3})
    clients = [_new_run(port) for _ in range(_CLIENTS)]
    sent = _send(port, clients, _SHORT, sizes.client_bodies // 50 + 1)
    table.compare("clients.rate", {MLFLOW: len(sent.latencies) * _SHORT / sent.seconds})
    table.compare("clients.p99", {MLFLOW: statistics.quantiles(sent.latencies, n=100)[98] * 1e3})


def _measure_reading(run: Run, folder: Path, port: int) -> None:
    """Ten series are ten requests, because MLflow's endpoint reads one metric (of several runs) at a time."""
    points, runs, database = run.sizes.peer_points, max(1, run.sizes.runs // 7), folder / "mlflow.db"
    before = database.stat().st_size
    wide = _new_run(port)
    _send(port, [wide], _BATCH, -(-points * _SERIES // _BATCH))
    run.table.compare("disk.points", {MLFLOW: (database.stat().st_size - before) / points / _SERIES})
    with _connected(port) as connection:
        for key, samples in (("histogram.100", 100), ("histogram.2000", 2000), ("histogram.6000", _MOST_POINTS)):
            took = median_ms(partial(_read_wide, connection, wide, samples), runs)
            run.table.compare(key, {f"{MLFLOW}, {samples} points of each": took})
        query = {"run_id": wide, "metric_key": "metric 0", "max_results": "10000"}
        page = partial(connection.get, f"{_API}/metrics/get-history?{urlencode(query)}")
        run.table.compare("raw", {MLFLOW: median_ms(page, runs)})


def _read_wide(connection: Connection, run_id: str, samples: int) -> None:
    for number in range(_SERIES):
        query = {"run_ids": run_id, "metric_key": f"metric {number}", "max_results": str(samples)}
        answer = json.loads(connection.get(f"{_READ}?{urlencode(query)}"))
        assert answer["metrics"], "no points came back"

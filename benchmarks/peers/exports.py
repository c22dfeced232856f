"""The points of an export as others give them out: MLflow's history of metrics, and TensorBoard's EventAccumulator.

They get a tenth of the points of the figures: all of them would take MLflow and TensorBoard many minutes. Each has one
run with two curves in a store of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from benchmarks.client import Connection
from benchmarks.figures import MLFLOW
from benchmarks.peers import mlflow
from benchmarks.run import Run

_SCRIPTS = Path(__file__).parent / "scripts"
_LESS, _CURVES = 10, 2
#: The most points that MLflow answers at once.
_PAGE = 25_000
_ACCUMULATOR = "TensorBoard's EventAccumulator"


def measure(run: Run, programs: Path) -> None:
    """Measure both, and put their seconds beside those of CSV."""
    points = run.sizes.exported_points // _LESS // _CURVES
    run.table.compare("data.csv", {f"{MLFLOW}, the history of a tenth of them": _of_mlflow(run, programs, points)})
    run.table.compare("data.csv", {f"{_ACCUMULATOR}, a tenth of them": _of_tensorboard(run, programs, points)})


def _of_mlflow(run: Run, programs: Path, points: int) -> float:
    folder = run.folder / "mlflow exported"
    folder.mkdir()
    with mlflow.served(folder, programs):
        pass  # the first start makes the database
    asked = {"database": str(folder / "mlflow.db"), "runs": 1, "metrics": _CURVES, "points": points}
    _script(programs, "mlflow_runs.py", asked)
    with mlflow.served(folder, programs) as (_, port):
        headers = {"Content-Type": "application/json"}
        with contextlib.closing(Connection(port, headers)) as connection:
            found = connection.call("api/2.0/mlflow/runs/search", {"experiment_ids": ["0"]})["runs"]
            started = time.perf_counter()
            for number in range(_CURVES):
                read = _history(connection, found[0]["info"]["run_id"], f"metric {number:02}")
                assert read == points, f"{read} points came back"
            return time.perf_counter() - started


def _history(connection: Connection, id: str, metric: str) -> int:
    """Read all points of a metric, page by page; how many they are."""
    asked, count = {"run_id": id, "metric_key": metric, "max_results": str(_PAGE)}, 0
    while True:
        page = json.loads(connection.get(f"api/2.0/mlflow/metrics/get-history?{urlencode(asked)}"))
        count += len(page.get("metrics", ()))
        if not page.get("next_page_token"):
            return count
        asked["page_token"] = page["next_page_token"]


def _of_tensorboard(run: Run, programs: Path, points: int) -> float:
    folder = str(run.folder / "tensorboard exported")
    _script(programs, "tensorboard_runs.py", {"folder": folder, "runs": 1, "metrics": _CURVES, "points": points})
    return float(_script(programs, "tensorboard_loading.py", {"folder": folder, "points": points}))


def _script(programs: Path, name: str, asked: dict[str, Any]) -> bytes:
    """What a script in the peers' environment writes."""
    command = [str(programs / "python"), str(_SCRIPTS / name), json.dumps(asked)]
    environment = {**os.environ, **mlflow.ENVIRONMENT}
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, timeout=1800).stdout

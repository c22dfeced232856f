"""Web UIs of others in the same browser: the charts of ten runs, opened by their address.

Each has such runs in its own store: 20 metrics of random points. TensorBoard shows twelve of the charts, which is its
first page, and MLflow those that are in the window. TensorBoard draws where no script sees it. So its page counts as
drawn when its picture changes for the last time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

from apiserver.rpc.auth import TOKEN_COOKIE
from benchmarks.browser import CHROMIUM, Traffic, drawn_seconds, fresh, heap_mb, launched
from benchmarks.columns import Load, fill
from benchmarks.figures import CLEARML_PAGE, MLFLOW_PAGE, TENSORBOARD_PAGE
from benchmarks.peers import ENVIRONMENT, mlflow
from benchmarks.run import Run
from benchmarks.server import Running, running
from benchmarks.viewer import DRAWN
from tests.harness import free_ports, wait_until

_SCRIPTS = Path(__file__).parent / "scripts"
_RUNS, _METRICS = 10, 20
_WINDOW = (1600, 2400)
#: Whether the charts of each page are there, with all lines.
_READY = f"({DRAWN})({_METRICS})"
_TENSORBOARD_READY = """document.querySelectorAll('scalar-card line-chart').length >= 12
  && !document.querySelector('scalar-card mat-spinner')"""
_MLFLOW_READY = f"""(() => {{
  const charts = [...document.querySelectorAll('.js-plotly-plot')];
  return charts.length >= 15 && charts.every((one) => one.querySelectorAll('.js-line').length >= {_RUNS});
}})()"""
#: The address of ClearML's web UI, comparing runs with such curves; without it, it is left out.
_CLEARML = "CLEARML_PAGE"


def measure(run: Run) -> None:
    """The figures pages.*"""
    if CHROMIUM is None:
        sys.stderr.write("there is no chromium, which shows the pages\n")
        return
    points = run.sizes.compared_points
    with running(run.folder) as server:
        cookie = (server.server.api_url, TOKEN_COOKIE, server.call("auth.login", {})["token"])
        address = f"{server.server.api_url}{_filled(server, points)}"
        for figure, value in _measured(run, address, _READY, cookie).items():
            run.table.put(figure, value)
    if (ENVIRONMENT / "bin/python").exists():
        with _tensorboard(run.folder, points) as address:
            _compare(run, TENSORBOARD_PAGE, address, _TENSORBOARD_READY, by_picture=True)
        with _mlflow(run.folder, points) as address:
            _compare(run, MLFLOW_PAGE, address, _MLFLOW_READY)
    else:
        sys.stderr.write(f"the peers are not installed in {ENVIRONMENT}: `make bench` does that\n")
    if _CLEARML in os.environ:
        _compare(run, CLEARML_PAGE, os.environ[_CLEARML], "document.querySelector('svg, canvas')", by_picture=True)


def _compare(run: Run, peer: str, address: str, drawn: str, *, by_picture: bool = False) -> None:
    for figure, value in _measured(run, address, drawn, by_picture=by_picture).items():
        run.table.compare(figure, {peer: value})


def _measured(
    run: Run, address: str, drawn: str, cookie: tuple[str, str, str] | None = None, *, by_picture: bool = False
) -> dict[str, float]:
    """The figures of a page, each time opened with an empty cache."""
    found: dict[str, list[float]] = {"pages.drawn": [], "pages.bytes": [], "pages.heap": []}
    with launched() as browser:
        for _ in range(max(1, run.sizes.runs // 7)):
            with fresh(browser, _WINDOW, cookie) as page:
                traffic = Traffic(page)
                found["pages.drawn"].append(drawn_seconds(page, address, drawn, by_picture=by_picture))
                found["pages.bytes"].append(traffic.megabytes)
                found["pages.heap"].append(heap_mb(page.context.new_cdp_session(page)))
    return {figure: statistics.median(values) for figure, values in found.items()}


def _filled(server: Running, points: int) -> str:
    """The path of the page that compares the runs."""
    project = server.call("projects.create", {"name": "compared"})["id"]
    runs = [server.task(f"run {number}", project) for number in range(_RUNS)]
    server.stop()
    loads = [
        Load(one, points, 1, points, f"metric {metric:02}", seed=number * _METRICS + metric)
        for number, one in enumerate(runs)
        for metric in range(_METRICS)
    ]
    asyncio.run(fill(server.events, loads))
    server.start()
    return f"/projects/{project}/compare?{urlencode({'tasks': ','.join(one.id for one in runs)})}"


@contextlib.contextmanager
def _tensorboard(folder: Path, points: int) -> Iterator[str]:
    """The address of its charts, once it has read all points of all runs."""
    runs, port = folder / "tensorboard", free_ports(1)[0]
    _run("tensorboard_runs.py", {"folder": str(runs), "runs": _RUNS, "metrics": _METRICS, "points": points})
    with open(folder / "tensorboard.log", "wb") as log:
        process = subprocess.Popen(
            [ENVIRONMENT / "bin/tensorboard", "--logdir", runs, "--host", "127.0.0.1", "--port", str(port)],
            stdout=log,
            stderr=log,
        )
    try:
        wait_until(lambda: _has_read(port, points - 1), 180)
        yield f"http://127.0.0.1:{port}/#timeseries"
    finally:
        process.terminate()
        process.wait(30)


def _has_read(port: int, last: int) -> bool:
    """Whether each run has its last step."""
    address = f"http://127.0.0.1:{port}/data/plugin/scalars/scalars?{{}}"
    with contextlib.suppress(OSError):
        queries = (urlencode({"tag": "all/metric 00", "run": f"run {number}"}) for number in range(_RUNS))
        return all(json.load(urlopen(address.format(query)))[-1][1] == last for query in queries)
    return False


@contextlib.contextmanager
def _mlflow(folder: Path, points: int) -> Iterator[str]:
    """The address of its charts."""
    home = folder / "mlflow"
    home.mkdir()
    with mlflow.served(home, ENVIRONMENT / "bin"):
        pass  # the first start makes the database
    asked = {"database": str(home / "mlflow.db"), "runs": _RUNS, "metrics": _METRICS, "points": points}
    _run("mlflow_runs.py", asked)
    with mlflow.served(home, ENVIRONMENT / "bin") as (_, port):
        yield f"http://127.0.0.1:{port}/#/experiments/0/runs?compareRunsMode=CHART"


def _run(script: str, asked: dict[str, Any]) -> None:
    """Run a script in the peers' environment."""
    environment = {**os.environ, **mlflow.ENVIRONMENT}
    command = [str(ENVIRONMENT / "bin/python"), str(_SCRIPTS / script), json.dumps(asked)]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True, timeout=1800)

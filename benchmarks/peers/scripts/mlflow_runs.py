"""Runs in the peers' environment: fills a database of MLflow with runs that have the same metrics.

`python mlflow_runs.py JSON`, where JSON has database, runs, metrics and points. MLflow's client makes the runs and logs
the last point of each metric. The other points are inserted, because the client logs some thousand a second.
"""

import json
import random
import sqlite3
import sys
from contextlib import closing

from mlflow.entities import Metric
from mlflow.tracking import MlflowClient

START_MS = 1_700_000_000_000
INSERT = "INSERT INTO metrics (key, value, timestamp, run_uuid, step, is_nan) VALUES (?, ?, ?, ?, ?, 0)"


def main(database: str, runs: int, metrics: int, points: int) -> None:
    """Make the runs."""
    values = random.Random(0)
    client = MlflowClient(f"sqlite:///{database}")
    names = [f"metric {number:02}" for number in range(metrics)]
    made = [client.create_run("0", run_name=f"run {number}").info.run_id for number in range(runs)]
    for run in made:
        client.log_batch(run, [Metric(name, values.gauss(0, 1), START_MS + points * 50, points - 1) for name in names])
    with closing(sqlite3.connect(database)) as connection, connection:
        for run in made:
            for name in names:
                steps = range(points - 1)
                rows = [(name, values.gauss(0, 1), START_MS + step * 50, run, step) for step in steps]
                connection.executemany(INSERT, rows)
    for run in made:
        client.set_terminated(run)


main(**json.loads(sys.argv[1]))

"""Runs in the peers' environment: writes event files of some runs by TensorBoard's own writer.

`python tensorboard_runs.py JSON`, where JSON has folder, runs, metrics and points.
"""

import json
import random
import sys
from pathlib import Path

from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.record_writer import RecordWriter


def main(folder: str, runs: int, metrics: int, points: int) -> None:
    """One folder a run. An event has a point of each metric: with an event for each point, writing takes minutes."""
    values = random.Random(0)
    tags = [f"all/metric {number:02}" for number in range(metrics)]
    for run in range(runs):
        path = Path(folder, f"run {run}", "events.out.tfevents.1700000000")
        path.parent.mkdir(parents=True)
        with open(path, "wb") as file:
            writer = RecordWriter(file)
            writer.write(event_pb2.Event(wall_time=1.7e9, file_version="brain.Event:2").SerializeToString())
            for step in range(points):
                scalars = [summary_pb2.Summary.Value(tag=tag, simple_value=values.gauss(0, 1)) for tag in tags]
                event = event_pb2.Event(
                    wall_time=1.7e9 + step / 20, step=step, summary=summary_pb2.Summary(value=scalars)
                )
                writer.write(event.SerializeToString())


main(**json.loads(sys.argv[1]))

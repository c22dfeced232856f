"""Runs in the peers' environment: loads all points of event files by TensorBoard's EventAccumulator.

`python tensorboard_loading.py JSON`, where JSON has folder and points (of each curve); prints the seconds it takes.
"""

import json
import sys
import time
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

ALL = {"scalars": 0}


def main(folder: str, points: int) -> None:
    """Load the only run of the folder."""
    (run,) = Path(folder).iterdir()
    started = time.perf_counter()
    loaded = EventAccumulator(str(run), size_guidance=ALL).Reload()
    counts = [len(loaded.Scalars(tag)) for tag in loaded.Tags()["scalars"]]
    took = time.perf_counter() - started
    assert set(counts) == {points}, counts
    print(took)


main(**json.loads(sys.argv[1]))

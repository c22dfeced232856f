"""Writes runs with tensorboardX below the folder `whole`, and copies them into `cut`, where a last file may end early.

In: a list of {"name", "files": [{"purge", "calls"}], "cut"}; a call is the end of a method's name, and its arguments.
Out: what TensorBoard's own reader has of both folders, as {folder: [[run, kind, tag, step, time, value]]}.
"""

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboardX import SummaryWriter

KINDS = ("scalars", "tensors", "images", "histograms")


def write(run):
    folder = Path("whole", run["name"])
    for number, file in enumerate(run["files"]):
        with SummaryWriter(str(folder), purge_step=file["purge"], filename_suffix=f".{number}") as writer:
            for kind, *arguments in file["calls"]:
                arrays = (np.array(one) if isinstance(one, list) else one for one in arguments)
                getattr(writer, f"add_{kind}")(*arrays)
    copy = shutil.copytree(folder, Path("cut", run["name"]))
    if run["cut"] is not None:
        last = max(path for path in copy.iterdir() if path.is_file())
        os.truncate(last, int(run["cut"] * last.stat().st_size))


def read(folder):
    for here, _, names in os.walk(folder):
        if names:
            found = EventAccumulator(here, size_guidance=dict.fromkeys(KINDS, 0))
            found.Reload()
            tags, run = found.Tags(), os.path.relpath(here, folder)
            for tag in tags["scalars"]:
                yield from ([run, "scalar", tag, one.step, one.wall_time, one.value] for one in found.Scalars(tag))
            for tag in tags["tensors"]:
                for one in found.Tensors(tag):
                    texts = [text.decode() for text in one.tensor_proto.string_val]
                    yield from ([run, "text", tag, one.step, one.wall_time, text] for text in texts)
            for tag in tags["images"]:
                yield from ([run, "image", tag, one.step, one.wall_time, None] for one in found.Images(tag))
            for tag in tags["histograms"]:
                yield from (
                    [run, "histogram", tag, one.step, one.wall_time, one.histogram_value.num]
                    for one in found.Histograms(tag)
                )


for run in json.load(sys.stdin):
    write(run)
print(json.dumps({folder: list(read(folder)) for folder in ("whole", "cut")}))

"""Writes runs with W&B, offline, below the folder `whole`, and copies them into `cut`, where a last log may end early.

In: a list of {"name", "id", "sessions", "cut"}. A session makes a folder of its run, and has defines, rows, config,
summary, code. A definition has the arguments of define_metric, and a row is [step or None, values].
Out: what both folders hold, read with W&B's own messages: {folder: {name: [session]}}. There, a session has rows,
defines, config, code, a row is [step, time, values by name], and a definition the name or the glob.
"""

import json
import os
import shutil
import struct
import sys
from pathlib import Path

import wandb
from wandb.proto.wandb_internal_pb2 import Record

HEADER, BLOCK = 7, 32768
WHOLE, LAST = 1, 4


def write(run):
    folder = Path("whole", run["name"])
    folder.mkdir(parents=True)
    for number, session in enumerate(run["sessions"]):
        settings = wandb.Settings(
            mode="offline", silent=True, x_disable_stats=True, x_disable_meta=True, console="off", root_dir="written"
        )
        os.makedirs("written", exist_ok=True)
        made = wandb.init(
            project="models",
            name=run["name"],
            id=run["id"],
            resume="allow" if number else None,
            config=session["config"],
            settings=settings,
        )
        for name, step, sync in session["defines"]:
            made.define_metric(name, step_metric=step, step_sync=sync)
        for step, values in session["rows"]:
            made.log(values, step=step)
        made.summary.update(session["summary"])
        written = Path(made.dir).parent
        made.finish(exit_code=session["code"])
        written.rename(folder / f"offline-run-{number}-{run['id']}")


def cut(run):
    copy = shutil.copytree(Path("whole", run["name"]), Path("cut", run["name"]))
    if run["cut"] is not None:
        last = max(copy.glob("*/*.wandb"))
        os.truncate(last, int(run["cut"] * last.stat().st_size))


def read(folder):
    return {
        run.name: [session(records(path)) for path in sorted(run.glob("*/*.wandb"))] for run in Path(folder).iterdir()
    }


def records(path):
    """The whole records of a log: W&B keeps them as LevelDB does."""
    data, at, found = path.read_bytes(), HEADER, b""
    while at + HEADER <= len(data):
        if BLOCK - at % BLOCK < HEADER:
            at += BLOCK - at % BLOCK
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        at += HEADER + length
        if at > len(data):
            return
        found += data[at - length : at]
        if kind in (WHOLE, LAST):
            yield Record.FromString(found)
            found = b""


def session(records):
    found = {"rows": [], "defines": [], "config": {}, "code": None}
    for record in records:
        kind = record.WhichOneof("record_type")
        if kind == "history":
            items = {name(item): json.loads(item.value_json) for item in record.history.item}
            own = {key: items.pop(key, None) for key in ("_step", "_timestamp", "_runtime")}
            found["rows"].append([own["_step"], own["_timestamp"], dict(flat(items))])
        elif kind == "run":
            found["config"].update({name(item): json.loads(item.value_json) for item in record.run.config.update})
        elif kind == "config":
            found["config"].update({name(item): json.loads(item.value_json) for item in record.config.update})
        elif kind == "metric":
            found["defines"].append(record.metric.name or record.metric.glob_name)
        elif kind == "exit":
            found["code"] = record.exit.exit_code
    return found


def name(item):
    return item.key or ".".join(item.nested_key)


def flat(items):
    for key, one in items.items():
        if isinstance(one, dict):
            yield from flat({f"{key}.{inner}": inside for inner, inside in one.items()})
        else:
            yield key, one


runs = json.load(sys.stdin)
for run in runs:
    write(run)
wandb.teardown()  # logs may be written behind the end of their runs, until then
for run in runs:
    cut(run)
print(json.dumps({folder: read(folder) for folder in ("whole", "cut")}))

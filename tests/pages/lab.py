"""Runs as people have them, posted by the API: curves with a spike, machine load, a console, figures, pictures."""

from __future__ import annotations

import json
import math
import random
import struct
import time
import zlib
from dataclasses import dataclass, field
from typing import Any

from tests.harness import Served

#: Where one training run has a value of 9.0, among values below 3.
SPIKE_AT, SPIKE = 777, 9.0
POINTS = 2000
LINES = 600
#: What the runs of the project "Vision/Detection" were started with, by their names.
RUNS = {
    "resnet-50": {"lr": "0.1", "batch_size": "64", "optimizer": "sgd"},
    "resnet-50 small lr": {"lr": "0.01", "batch_size": "64", "optimizer": "sgd"},
    "vit-base": {"lr": "0.001", "batch_size": "32", "optimizer": "adamw"},
    "vit-large": {"lr": "0.0003", "batch_size": "16", "optimizer": "adamw"},
    "broken": {"lr": "10", "batch_size": "64", "optimizer": "sgd"},
    "running now": {"lr": "0.05", "batch_size": "128", "optimizer": "sgd"},
}


@dataclass(slots=True)
class Lab:
    """The ids of what was posted, by name."""

    projects: dict[str, str] = field(default_factory=dict)
    tasks: dict[str, str] = field(default_factory=dict)
    models: dict[str, str] = field(default_factory=dict)

    @property
    def run(self) -> str:
        """The run that has everything, and the spike."""
        return self.tasks["resnet-50"]

    @property
    def project(self) -> str:
        """The project of the training runs."""
        return self.projects["Vision/Detection"]

    def at(self, name: str, tab: str = "") -> str:
        """The address of a run's page, of one of its tabs if that is given."""
        return f"/projects/{self.project}/tasks/{self.tasks[name]}" + (f"/{tab}" if tab else "")


def fill(server: Served) -> Lab:
    """Post everything. It takes about two seconds."""
    lab = Lab()
    for name in ("Vision", "Vision/Detection", "Vision/Detection/Ablation", "Language"):
        lab.projects[name] = server.call("projects.create", {"name": name, "description": f"About {name}"})["id"]
    for place, (name, parameters) in enumerate(RUNS.items()):
        lab.tasks[name] = _training(server, lab, name, parameters, place)
    lab.models["resnet-50"] = server.call(
        "models.create",
        {
            "name": "resnet-50 weights",
            "uri": f"{server.files_url}/models/weights.pt",
            "framework": "PyTorch",
            "project": lab.project,
            "task": lab.run,
            "labels": {"cat": 0, "dog": 1},
            "tags": ["best"],
        },
    )["id"]
    lab.tasks["draft"] = _task(
        server, lab, "draft", project="Vision/Detection/Ablation", hyperparams=_section({"lr": "1"})
    )
    lab.tasks["tokenizer"] = _task(server, lab, "tokenizer", project="Language")
    _special(server, lab)
    return lab


def scalars(task: str, metric: str, variant: str, values: list[float], start: int, step_ms: int = 1000) -> list[Any]:
    """Events of a curve: one value an iteration."""
    common = {"type": "training_stats_scalar", "task": task, "metric": metric, "variant": variant}
    return [
        {**common, "iter": iteration, "timestamp": start + iteration * step_ms, "value": value}
        for iteration, value in enumerate(values)
    ]


def add(server: Served, events: list[Any]) -> None:
    """Post events in one batch."""
    body = "\n".join(map(json.dumps, events))
    with server.client() as client:
        answer = client.post("/events.add_batch", content=body, headers={"content-type": "application/json-lines"})
    assert answer.json()["data"]["errors"] == 0, answer.text


def plot(server: Served, task: str, metric: str, iteration: int = 1) -> None:
    """Post a table as a plot of one variant."""
    figure = '{"data": [{"type": "table", "header": {"values": ["a"]}, "cells": {"values": [[1]]}}]}'
    event = {"type": "plot", "task": task, "metric": metric, "variant": "v", "iter": iteration, "timestamp": iteration}
    add(server, [{**event, "plot_str": figure}])


def png(width: int, height: int, colour: tuple[int, int, int]) -> bytes:
    """A picture of one colour."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = (b"\0" + bytes(colour) * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def upload(server: Served, name: str, content: bytes) -> str:
    """The address of a stored file."""
    with server.client() as client:
        assert client.put(f"{server.files_url}/{name}", content=content).status_code == 200
    return f"{server.files_url}/{name}"


def _training(server: Served, lab: Lab, name: str, parameters: dict[str, str], place: int) -> str:
    dice = random.Random(name)
    task = _task(
        server,
        lab,
        name,
        project="Vision/Detection",
        tags=[parameters["optimizer"], "baseline"] if place == 0 else [parameters["optimizer"]],
        comment=f"Trained with {parameters['optimizer']}.",
        hyperparams={**_section(parameters), "General": _section({"seed": str(place), "epochs": "90"})["Args"]},
        configuration={"model": {"name": "model", "type": "yaml", "value": f"depth: {50 + place}\nwidth: 64\n"}},
        script={
            "repository": "https://git.example.org/vision/detection.git",
            "branch": "main",
            "version_num": f"{place}" * 40,
            "entry_point": "train.py",
            "working_dir": ".",
            "diff": "--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-lr = 0.2\n+lr = 0.1\n" if place == 0 else "",
            "requirements": {"pip": f"numpy==2.1.{place}\ntorch==2.8.0\n"},
        },
    )
    server.call("tasks.started", {"task": task, "status_reason": "", "status_message": ""})
    start = int(time.time() * 1000) - 3_600_000
    loss = [3 * math.exp(-i / (300 + 60 * place)) + dice.random() * 0.1 for i in range(POINTS)]
    if name == "resnet-50":
        loss[SPIKE_AT] = SPIKE
    if name == "broken":
        loss = loss[:100]
    events = scalars(task, "loss", "train", loss, start)
    events += scalars(task, "loss", "validation", [value * 1.1 + 0.05 for value in loss[::10]], start, 10_000)
    events += scalars(task, "accuracy", "top 1", [max(0.0, 1 - value / 3) for value in loss], start)
    for gpu in range(2):
        load = [70 + 20 * math.sin(i / 20 + gpu) for i in range(200)]
        events += scalars(task, ":monitor:gpu", f"gpu_{gpu}_utilization", load, start, 10_000)
    memory = [12 + i / 100 for i in range(200)]
    events += scalars(task, ":monitor:machine", "memory_used_gb", memory, start, 10_000)
    add(server, events)
    add(server, _console(task, start))
    if place == 0:
        _figures(server, task, start)
    match name:
        case "running now":
            pass
        case "broken":
            said = {"status_reason": "error", "status_message": "RuntimeError: loss is NaN"}
            server.call("tasks.failed", {"task": task, **said})
        case _:
            server.call("tasks.completed", {"task": task, "status_reason": "", "status_message": ""})
    return task


def _console(task: str, start: int) -> list[Any]:
    """Lines with colours, a progress bar that is written over itself, a warning and an error."""
    common = {"type": "log", "task": task, "worker": "gpu-7:gpu0,1"}
    lines: list[tuple[str, str]] = [("info", "Environment setup completed successfully")]
    for step in range(LINES):
        match step % 50:
            case 10:
                lines.append(("info", f"\x1b[32mepoch {step // 50}\x1b[0m: \x1b[1mloss {3 / (step + 1):.4f}\x1b[0m"))
            case 20:
                bar = "\r".join(f"{part:3}%|{'█' * (part // 10):10}| {part}/100" for part in range(0, 101, 20))
                lines.append(("info", bar))
            case 30:
                lines.append(("warning", f"step {step}: gradient norm is \x1b[33mlarge\x1b[0m"))
            case 40:
                lines.append(("error", f"step {step}: worker lost, retrying <b>now</b>"))
            case _:
                lines.append(("info", f"step {step} done"))
    return [
        {**common, "level": level, "msg": message, "timestamp": start + 3000 * at}
        for at, (level, message) in enumerate(lines)
    ]


def _figures(server: Served, task: str, start: int) -> None:
    """A table, a confusion matrix and histograms as Plotly figures; pictures at three iterations; artifacts."""
    classes = ["cat", "dog"]
    table = {"header": {"values": ["class", "recall"]}, "cells": {"values": [classes, [0.9, 0.8]]}}
    figures: dict[tuple[str, str], dict[str, Any]] = {
        ("confusion", "validation"): {"type": "heatmap", "z": [[9, 1], [2, 8]], "x": classes, "y": classes},
        ("summary", "table"): {"type": "table", **table},
        ("weights", "layer 1"): {"type": "bar", "x": [1, 2, 3], "y": [5, 9, 4]},
    }
    events = [
        {
            "type": "plot",
            "task": task,
            "metric": metric,
            "variant": variant,
            "iter": iteration,
            "timestamp": start + iteration * 1000,
            "plot_str": json.dumps({"data": [trace], "layout": {"title": f"{metric} {variant}"}}),
        }
        for (metric, variant), trace in figures.items()
        for iteration in (100, 200, 300)
    ]
    for iteration, colour in ((100, (200, 40, 40)), (200, (40, 160, 40)), (300, (40, 40, 200))):
        for variant in ("input", "prediction"):
            url = upload(server, f"samples/{variant}-{iteration}.png", png(64, 48, colour))
            event = {"type": "training_debug_image", "task": task, "metric": "samples", "variant": variant}
            events.append({**event, "iter": iteration, "timestamp": start + iteration * 1000, "url": url, "key": url})
    add(server, events)
    upload(server, "models/weights.pt", b"weights")
    report = upload(server, "artifacts/metrics.json", b'{"recall": 0.85}')
    artifact = {
        "key": "metrics",
        "type": "dict",
        "mode": "output",
        "uri": report,
        "content_size": 16,
        "timestamp": start // 1000,
    }
    server.call("tasks.add_or_update_artifacts", {"task": task, "artifacts": [artifact]})


def _special(server: Served, lab: Lab) -> None:
    """A report, a version of a data set, and a run of a pipeline with its step."""
    text = f"# Results\n\nThe best run is **resnet-50**, see `{lab.run}`.\n\n- recall 0.85\n"
    made = server.call("reports.create", {"name": "Which model?", "project": lab.projects["Vision"], "report": text})
    lab.tasks["report"] = made["id"]
    for name, project, system_tags, kind in (
        ("coco", "Vision/.datasets/coco", ["dataset"], "data_processing"),
        ("train nightly", "Vision/.pipelines/train nightly", ["pipeline"], "controller"),
    ):
        hidden = server.call(
            "projects.create", {"name": project, "description": "", "system_tags": ["hidden", *system_tags]}
        )
        lab.projects[project] = hidden["id"]
        lab.tasks[name] = _task(server, lab, name, project=project, system_tags=system_tags, type=kind)
    step = {"project": "Vision/.pipelines/train nightly", "parent": lab.tasks["train nightly"]}
    lab.tasks["step"] = _task(server, lab, "step", **step)


def _task(server: Served, lab: Lab, name: str, *, project: str, **fields: Any) -> str:
    made = server.call("tasks.create", {"name": name, "type": "training", "project": lab.projects[project], **fields})
    return str(made["id"])


def _section(parameters: dict[str, str]) -> dict[str, Any]:
    return {
        "Args": {
            name: {"section": "Args", "name": name, "value": value, "type": ""} for name, value in parameters.items()
        }
    }

"""What is written into golden folders, and what is asked of them, in calls that all releases know.

Timestamps are given with the events, so that a folder has the same in it whenever it is made, but for ids.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.harness import Served

_FIRST = 1_700_000_000_000
#: Points of the longest series: more than a sealed chunk takes.
_LONG = 20_000
#: Events of a batch.
_BATCH = 8000
#: Differ from call to call.
_OF_THE_CALL = {"scroll_id"}
#: Longer answers are known by their digest.
_LONGEST = 40_000

Call = dict[str, Any]


@dataclass
class Made:
    """The ids of what was made, and the calls that ask for it."""

    tasks: dict[str, str] = field(default_factory=dict)
    model: str = ""
    project: str = ""
    queue: str = ""


def _event(type: str, task: str, iter: int, **fields: Any) -> dict[str, Any]:
    return {"type": type, "task": task, "iter": iter, "timestamp": _FIRST + iter * 1000, "worker": "w", **fields}


def _scalar(task: str, iter: int, metric: str, variant: str, value: Any, **fields: Any) -> dict[str, Any]:
    return _event("training_stats_scalar", task, iter, metric=metric, variant=variant, value=value, **fields)


def first(server: Served) -> Made:
    """Write what is merged, sealed and backed up before `second` writes more."""
    made = Made()
    made.project = server.call("projects.create", {"name": "golden/ünïcode", "description": "of a release"})["id"]
    made.queue = server.call("queues.create", {"name": "a queue", "tags": ["gpu"]})["id"]
    for name in ("curves", "logs", "samples", "other", "draft"):
        asked = {"name": name, "type": "training", "project": made.project, "tags": ["golden", name], "comment": "ü 😀"}
        section = {"Args": {"lr": {"section": "Args", "name": "lr", "type": "float", "value": "0.1"}}}
        made.tasks[name] = server.call("tasks.create", {**asked, "hyperparams": section})["id"]
    model = {"name": "net", "uri": "file:///net.pt", "labels": {"cat": 1}, "framework": "PyTorch", "ready": False}
    made.model = server.call("models.create", {**model, "project": made.project})["id"]
    for task in (made.tasks["curves"], made.tasks["logs"]):
        server.call("tasks.started", {"task": task})
    events = [*_curves(made), *_lines(made), *_samples(made)]
    for start in range(0, len(events), _BATCH):
        _add(server, events[start : start + _BATCH])
    server.call("tasks.stopped", {"task": made.tasks["logs"]})
    server.call("tasks.completed", {"task": made.tasks["curves"]})
    for name, content in (("artifacts/a b/ü.txt", "grün\n".encode()), ("large.bin", bytes(range(256)) * 40)):
        with server.client() as client:
            answer = client.post(f"{server.files_url}/", files={name: (name, content, "application/octet-stream")})
            assert answer.status_code == 200, answer.text
    return made


def second(server: Served, made: Made) -> None:
    """Write what stays in the journal: points over others and behind them, lines, samples; and change documents."""
    task, other = made.tasks["curves"], made.tasks["other"]
    points = [_scalar(task, i, "long", "steps", -1.0, allow_locked=True) for i in range(5000, 5003)]
    points += [_scalar(task, _LONG + i, "long", "steps", i / 4, allow_locked=True) for i in range(40)]
    points += [_scalar(other, i, "late", "variant", i * 0.1) for i in range(30)]
    logs = [_event("log", other, i, msg=f"in the journal {i} \t é", level="info") for i in range(20)]
    plot = _event("plot", other, 1, metric="p", variant="v", plot_str='{"data": [{"y": [1, 2]}], "layout": {}}')
    _add(server, (*points, *logs, plot))
    server.call("tasks.edit", {"task": made.tasks["draft"], "name": "draft, renamed"})
    server.call("tasks.enqueue", {"task": made.tasks["draft"], "queue": made.queue})


def _add(server: Served, events: Iterable[dict[str, Any]]) -> None:
    """Add a batch that is taken as a whole."""
    body = "\n".join(json.dumps(event) for event in events)
    with server.client() as client:
        answer = client.post("/v2.30/events.add_batch", content=body).json()
    assert answer["meta"]["result_code"] == 200, answer["meta"]
    assert not answer["data"].get("errors"), answer["data"]


def _curves(made: Made) -> Iterator[dict[str, Any]]:
    """Of all shapes: long, sparse, not finite, written twice, of one point, with odd names, of a model."""
    task, other = made.tasks["curves"], made.tasks["other"]
    shapes: dict[str, Callable[[int], float]] = {
        "cosine": lambda i: math.cos(i / 50),
        "thirds": lambda i: i / 3,
        "float32": lambda i: (i * 37 % 1000) / 256,
    }
    for name, shape in shapes.items():
        yield from (_scalar(task, i * 7 % 1500 * 3, "shapes", name, shape(i)) for i in range(1500))
    yield from (_scalar(task, i, "long", "steps", (i * 7 % 256) / 256) for i in range(_LONG))
    yield from (_scalar(task, 10**9 + i**3, "gaps", "cubes", i) for i in range(60))
    yield from (_scalar(task, 5, "twice", "same", value) for value in (1.0, 2.5))
    for iter, odd in enumerate(("NaN", "Infinity", "-Infinity", -0.0, 1e308, 5e-324, 1)):
        yield _scalar(other, iter, "odd", "values", odd)
    yield _scalar(other, -5, "odd", "negative iteration", 3)
    yield _scalar(other, -(2**31), "Summary", "best", 0.75)
    yield _scalar(other, 1, "a.b$c/ü", "d.e f 😀", 3)
    yield from (_scalar(other, i, f"metric {i % 40}", "many", i) for i in range(400))
    yield from (_scalar(other, i, ":monitor:gpu", "gpu_0", i, worker=f"machine {i % 3}") for i in range(30))
    yield from (_scalar(made.model, i, "of the model", "v", i, model_event=True) for i in range(5))


def _lines(made: Made) -> Iterator[dict[str, Any]]:
    task, levels = made.tasks["logs"], ("info", "warning", "error", "debug")
    for i in range(1500):
        text = f"step {i}: loss {i / 7:.4f}" if i % 50 else f"grün 😀 \x1b[31mred\x1b[0m {'x' * i}"
        yield _event("log", task, i // 3, msg=text, level=levels[i % 4], metric="stdout", variant=f"rank {i % 2}")


def _samples(made: Made) -> Iterator[dict[str, Any]]:
    task = made.tasks["samples"]
    for i in range(6):
        figure = json.dumps({"data": [{"x": [*range(i)], "y": [n / 3 for n in range(i)]}], "layout": {"title": "ü"}})
        yield _event("plot", task, i, metric="figure", variant=f"v{i % 2}", plot_str=figure)
        for n in range(2):
            yield _event(
                "training_debug_image", task, i, metric="im", variant=f"{n}", key=f"{i}/{n}", url=f"http://x/{i}.png"
            )
        yield _event("training_stats_vector", task, i, metric="hist", variant="w", values=[i + 0.5, i / 3])
    yield _event("plot", task, 9, metric="large", variant="z", plot_str=json.dumps({"data": [*range(20_000)]}))


def asked(made: Made) -> list[Call]:
    """Calls whose answers tell all that was written, so far as older clients may ask for it."""
    every = [*made.tasks.values()]
    of_model = {"task": made.model, "model_events": True}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("events.scalar_metrics_iter_histogram", of_model),
        ("tasks.get_all", {"id": every, "order_by": ["name"]}),
        ("tasks.get_all", {"name": "r", "order_by": ["-last_iteration"], "only_fields": ["name", "last_iteration"]}),
        ("models.get_by_id", {"model": made.model}),
        ("projects.get_by_id", {"project": made.project}),
        ("queues.get_by_id", {"queue": made.queue}),
        ("events.get_task_metrics", {"tasks": every}),
        ("events.get_vector_metrics_and_variants", {"task": made.tasks["samples"]}),
        ("events.vector_metrics_iter_histogram", {"task": made.tasks["samples"], "metric": "hist", "variant": "w"}),
    ]
    for task in every:
        calls += [
            ("tasks.get_by_id", {"task": task}),
            ("events.scalar_metrics_iter_histogram", {"task": task, "samples": 100}),
            ("events.scalar_metrics_iter_histogram", {"task": task, "samples": 50, "key": "timestamp"}),
            ("events.get_scalar_metrics_and_variants", {"task": task}),
            ("events.get_task_latest_scalar_values", {"task": task}),
            ("events.get_task_log", {"task": task, "batch_size": 5000, "order": "asc"}),
            ("events.get_task_log", {"task": task, "batch_size": 10}),
            ("events.get_task_plots", {"task": task, "iters": 10}),
            ("events.debug_images", {"metrics": [{"task": task}], "iters": 10}),
        ]
    names = [("curves", "shapes"), ("curves", "long"), ("curves", "gaps"), ("curves", "twice"), ("other", "odd")]
    for name, metric in names:
        page = {"task": made.tasks[name], "metric": {"metric": metric}, "batch_size": 10_000}
        calls.append(("events.scalar_metrics_iter_raw", page))
    calls.append(("events.get_scalar_metric_data", {"task": made.tasks["other"], "metric": "odd"}))
    return [{"endpoint": endpoint, "request": request} for endpoint, request in calls]


def files() -> list[str]:
    """The names of the files."""
    return ["artifacts/a%20b/%C3%BC.txt", "large.bin"]


def answer(server: Served, call: Call) -> Any:
    """The answer to a call, without what is of the call itself; a long one by its digest."""
    data = _kept(server.call(call["endpoint"], call["request"], version="2.30"))
    text = json.dumps(data, sort_keys=True)
    return data if len(text) < _LONGEST else hashlib.sha256(text.encode()).hexdigest()


def content(server: Served, name: str) -> str:
    """The digest of a file."""
    with server.client() as client:
        answer = client.get(f"{server.files_url}/{name}")
    assert answer.status_code == 200, answer.text
    return hashlib.sha256(answer.content).hexdigest()


def _kept(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _kept(item) for name, item in value.items() if name not in _OF_THE_CALL}
    return [_kept(item) for item in value] if isinstance(value, list) else value

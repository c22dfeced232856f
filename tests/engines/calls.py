"""A hundred and fifty calls that write and read every kind of event, with all that clients ask of them.

They are the same whatever server they are made to, and so are the answers, but for ids and times of the server's own.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from tests.harness import Api

FIRST_TIME = 1_700_000_000_000
#: Differ from server to server, or from call to call.
_OWN = {
    *("id@meta", "trx@meta", "scroll_id", "@timestamp", "user", "last_changed_by", "active_duration"),
    *("events_revision", "created", "published", "last_update", "last_change", "last_timestamp", "status_changed"),
}
_NOBODY = "f" * 32

Body = Mapping[str, Any] | list[Any]


@dataclass
class Recorder:
    """Makes calls, and keeps what was answered with the server's own ids named."""

    api: Api
    answers: dict[str, Any] = field(default_factory=dict)
    """Status and answer by the call's name."""
    names: dict[str, str] = field(default_factory=dict)
    """What ids are called in the answers."""

    async def __call__(
        self, name: str, endpoint: str, request: Body | None = None, *, lines: Iterable[Any] = (), version: str = "2.34"
    ) -> dict[str, Any]:
        """Make a call that is kept under a name; returns `data` of its answer. lines: of a body of JSON lines."""
        body = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
        content = body if request is None else json.dumps(request)
        response = await self.api.raw("POST", f"/v{version}/{endpoint}", content=content)
        is_json = "json" in response.headers["content-type"]
        answer: dict[str, Any] = response.json() if is_json else {"text": response.text}
        assert response.status_code < 500, (name, answer)
        assert name not in self.answers
        self.answers[name] = [response.status_code, self._named(answer)]
        data: dict[str, Any] = answer.get("data") or {}
        return data

    async def make(self, endpoint: str, called: str, **request: Any) -> str:
        """Make something whose id is called so in the answers."""
        id: str = (await self.api.call(endpoint, request))["id"]
        self.names[id] = called
        return id

    def _named(self, value: Any, key: str = "", parent: str = "") -> Any:
        if key in _OWN or f"{key}@{parent}" in _OWN:
            return "own" if value is not None else None
        if isinstance(value, dict):
            return {self._named(name): self._named(item, name, key) for name, item in value.items()}
        if isinstance(value, list):
            return [self._named(item, key, parent) for item in value]
        if isinstance(value, float):
            return float(f"{value:.12g}")  # sums are added up in another order
        if isinstance(value, str):
            value = re.sub(r'"@timestamp":"[^"]+"', "", value)
            return re.sub("[0-9a-f]{32}", lambda found: self.names.get(found[0], found[0]), value)
        return value


def _event(type: str, task: str, iter: int, **fields: Any) -> dict[str, Any]:
    return {"type": type, "task": task, "iter": iter, "timestamp": FIRST_TIME + iter * 1000, "worker": "here", **fields}


def _scalar(task: str, iter: int, metric: str, variant: str, value: float, **fields: Any) -> dict[str, Any]:
    return _event("training_stats_scalar", task, iter, metric=metric, variant=variant, value=value, **fields)


def _log(task: str, iter: int, msg: str, **fields: Any) -> dict[str, Any]:
    return _event("log", task, iter, msg=msg, **fields)


async def make_all(api: Api) -> dict[str, Any]:
    """Status and answer of each call, by its name."""
    call = Recorder(api)
    tasks = [await call.make("tasks.create", f"task {n}", name=f"task {n}", type="training") for n in range(4)]
    model = await call.make("models.create", "model", name="a model", uri="file:///a", labels={}, ready=False)
    await _write(call, tasks, model)
    await _refused(call, tasks, model)
    await _scalars(call, tasks, model)
    await _logs(call, tasks)
    await _samples(call, tasks)
    await _any_events(call, tasks)
    await _documents(call, tasks, model)
    await _life(call)
    await _reports(call, tasks)
    await _delete(call, tasks, model)
    return call.answers


async def _write(call: Recorder, tasks: list[str], model: str) -> None:
    first, second, third, _ = tasks
    curves: dict[tuple[str, str], Callable[[int], float]] = {
        ("loss", "train"): lambda i: 5 * math.exp(-i / 900),
        ("loss", "val"): lambda i: 5 * math.exp(-i / 1000) + math.sin(i),
        ("accuracy", "train"): lambda i: 1 - math.exp(-i / 700),
    }
    for start in range(0, 3000, 1500):
        points = [
            _scalar(first, i, *name, curve(i)) for i in range(start, start + 1500) for name, curve in curves.items()
        ]
        await call(f"write points from {start}", "events.add_batch", lines=points)
    points = [_scalar(second, i, *name, curve(i)) for i in range(0, 300, 10) for name, curve in curves.items()]
    await call("write every tenth", "events.add_batch", lines=points)
    monitors = [
        _scalar(second, 9000 + i, f":monitor:{kind}", "cpu_usage", i) for i, kind in enumerate(("gpu", "machine"))
    ]
    await call("write monitors", "events.add_batch", lines=monitors)
    single = [_scalar(first, -(2**31), "Summary", variant, value) for variant, value in (("best", 0.9), ("epochs", 12))]
    await call("write single values", "events.add_batch", lines=single)
    odd = [{**_scalar(third, 2, "odd values", name, 0), "value": name} for name in ("NaN", "Infinity", "-Infinity")]
    await call("write odd values", "events.add_batch", lines=odd)
    await call("write one point", "events.add", _scalar(third, 1, "one", "of many", 1.5))
    await call("write it again", "events.add", _scalar(third, 1, "one", "of many", 7.25))
    await call("write a negative iteration", "events.add", _scalar(third, -5, "one", "before", 2))
    await call("write dotted names", "events.add", _scalar(third, 1, "a.b$c", "d.e/f g", 3))
    await call(
        "write to a model",
        "events.add_batch",
        lines=[_scalar(model, i, "m", "v", i, model_event=True) for i in range(3)],
    )
    vectors = [
        _event("training_stats_vector", first, i, metric="hist", variant="w", values=[i + 0.5, i + 1.5])
        for i in range(3)
    ]
    await call("write vectors", "events.add_batch", lines=vectors)
    levels = ("notset", "debug", "verbose", "info", "warn", "warning", "error", "fatal", "critical")
    logs = [_log(first, i, f"line {i} ü", level=levels[i % 9]) for i in range(300)]
    logs += [_log(first, 300 + i // 50, f"line {300 + i}", metric="stdout", variant="x") for i in range(300)]
    await call("write lines", "events.add_batch", lines=logs)
    await call("write them again", "events.add_batch", lines=logs)
    await call("write few lines", "events.add_batch", lines=[_log(second, i, f"l{i}") for i in range(3)])
    plots = [
        _event("plot", task, i, metric=metric, variant=variant, plot_str=json.dumps({"data": [{"y": [i, i * 2]}]}))
        for task in (first, second)
        for i in range(4)
        for metric, variant in (("pm", "a"), ("pm", "b"), ("confusion", "c"))
    ]
    large = _event("plot", first, 3, metric="large", variant="z", plot_str=json.dumps({"data": list(range(30000))}))
    await call("write plots", "events.add_batch", lines=[*plots, large])
    images = [
        _event(
            "training_debug_image", first, i, metric=metric, variant=variant, key=f"k{i}", url=f"http://x/{i % 5}.png"
        )
        for i in range(12)
        for metric, variant in (("im", "a"), ("im", "b"), ("other", "c"))
    ]
    await call("write images", "events.add_batch", lines=images)


async def _refused(call: Recorder, tasks: list[str], model: str) -> None:
    third = tasks[2]
    good = _scalar(third, 3, "one", "of many", 3)
    some = [good, {"type": "nope", "task": third}, {"type": "log"}, {"task": third}, _log(_NOBODY, 0, "x")]
    await call("some are wrong", "events.add_batch", lines=some)
    await call("half a line", "events.add_batch", lines=[_log(third, 0, "good"), '{"type": "log", "task": '])
    await call("no object", "events.add_batch", lines=["[1, 2]"])
    await call("no line", "events.add_batch", lines=[])
    await call("an array", "events.add_batch", [_log(third, 1, "in an array")])
    await call("unknown task", "events.add", _log(_NOBODY, 0, "x"))
    await call("no type", "events.add", {"task": third, "value": 1})
    for name, wrong in {"iter": "abc", "iter too large": 2**63, "value": "abc", "metric": 5}.items():
        await call(f"wrong {name}", "events.add", {**good, name.split()[0]: wrong})
    await call("a log of a model", "events.add", {**_log(model, 0, "x"), "model_event": True})


async def _scalars(call: Recorder, tasks: list[str], model: str) -> None:
    first, second, third, empty = tasks
    histogram, several = "events.scalar_metrics_iter_histogram", "events.multi_task_scalar_metrics_iter_histogram"
    loss = [{"metric": "loss", "variants": ["train"]}]
    for samples in (0, 1, 10, 100, 999, 6000):
        await call(f"histogram of {samples}", histogram, {"task": first, "samples": samples})
    for key in ("iter", "timestamp", "iso_time"):
        await call(f"histogram by {key}", histogram, {"task": first, "samples": 50, "key": key, "metrics": loss})
        await call(f"histograms by {key}", several, {"tasks": [first, second], "samples": 20, "key": key})
    for name, task in {"odd": third, "empty": empty, "unknown": _NOBODY}.items():
        await call(f"histogram, {name}", histogram, {"task": task})
    await call("histogram of a model", histogram, {"task": model, "model_events": True})
    await call("histogram, 2.1", histogram, {"task": second, "samples": 10}, version="2.1")
    more = {"task": first, "samples": 30, "envelope": True}
    await call("histogram, envelope", histogram, more)
    await call("histogram, zoomed", histogram, {**more, "range": {"from": 1000, "to": 1100}})
    await call("histogram, too many", histogram, {"task": first, "samples": 6001})
    await call("histogram, no key", histogram, {"task": first, "key": "bogus"})
    await call("histograms, unknown", several, {"tasks": [first, _NOBODY]})
    groups = {"groups": [{"name": "all", "tasks": tasks}, {"name": "second", "tasks": [second]}], "metrics": loss}
    for key, fill in product(("iter", "duration", "timestamp", "iso_time"), ("linear", "last")):
        asked = {**groups, "key": key, "fill": fill, "quantiles": [0, 0.3]}
        await call(f"groups by {key}, {fill}", "events.scalar_metrics_of_groups", asked)
    raw = "events.scalar_metrics_iter_raw"
    for key in ("iter", "timestamp", "iso_time"):
        page: dict[str, Any] = {}
        for number in range(3):
            beyond = {"scroll_id": page.get("scroll_id"), "batch_size": 700, "key": key, "count_total": True}
            page = await call(f"raw by {key}, {number}", raw, {"task": first, "metric": loss[0], **beyond})
    await call("raw, two variants", raw, {"task": second, "metric": {"metric": "loss"}, "batch_size": 5})
    await call("raw, no scroll", raw, {"task": first, "metric": loss[0], "scroll_id": "nope"})
    for task, name in ((first, "first"), (third, "odd"), (empty, "empty")):
        await call(f"metrics, {name}", "events.get_scalar_metrics_and_variants", {"task": task})
        await call(f"latest values, {name}", "events.get_task_latest_scalar_values", {"task": task})
    page = await call("points of a metric", "events.get_scalar_metric_data", {"task": second, "metric": "loss"})
    beyond = {"task": second, "metric": "loss", "scroll_id": page.get("scroll_id")}
    await call("points of a metric, on", "events.get_scalar_metric_data", beyond)
    await call("single values", "events.get_task_single_value_metrics", {"tasks": [first, second]})
    await call("vectors", "events.get_vector_metrics_and_variants", {"task": first})
    vectors = {"task": first, "metric": "hist", "variant": "w"}
    await call("vectors of a variant", "events.vector_metrics_iter_histogram", vectors)


async def _logs(call: Recorder, tasks: list[str]) -> None:
    first, second, *_ = tasks
    log = "events.get_task_log"
    for earlier in (True, False):
        page: dict[str, Any] = {}
        for number in range(4):
            request = {"task": first, "navigate_earlier": earlier, "batch_size": 100}
            if page.get("events"):
                request["from_timestamp"] = page["events"][-1]["timestamp"]
            page = await call(f"log, {'back' if earlier else 'on'}, {number}", log, request)
    await call("log by metric", log, {"task": first, "batch_size": 2, "metrics": [{"metric": "stdout"}]})
    await call("log, past its end", log, {"task": first, "navigate_earlier": False, "from_timestamp": FIRST_TIME * 2})
    await call("log, ascending", log, {"task": first, "batch_size": 5, "order": "asc"})
    await call("log of nobody", log, {"task": _NOBODY})
    old = {"task": first, "batch_size": 3, "order": "asc"}
    page = await call("log, 1.5", log, old, version="1.5")
    await call("log, 1.5, on", log, {**old, "scroll_id": page.get("scroll_id")}, version="1.5")
    await call("log, 1.7", log, {"task": first, "batch_size": 3, "from": "tail"}, version="1.7")
    for line_type in ("json", "text"):
        await call(f"log as {line_type}", "events.download_task_log", {"task": second, "line_type": line_type})


async def _samples(call: Recorder, tasks: list[str]) -> None:
    first, second, *_ = tasks
    plots, several = "events.get_task_plots", "events.get_multi_task_plots"
    for iters in (1, 2, 10):
        await call(f"plots of {iters}", plots, {"task": first, "iters": iters})
        await call(f"plots of both, {iters}", several, {"tasks": [first, second], "iters": iters, "no_scroll": True})
    page = await call("plots of a metric", plots, {"task": first, "iters": 4, "metrics": [{"metric": "pm"}]})
    await call("plots, on", plots, {"task": first, "scroll_id": page.get("scroll_id")})
    last = {"tasks": [first, second], "iters": 2, "last_iters_per_task_metric": False, "metrics": [{"metric": "pm"}]}
    await call("plots of both, last", several, last)
    for endpoint, metrics in (("plots", ["pm"]), ("debug_images", ["im", "other"])):
        request = {"metrics": [{"task": first, "metric": metric} for metric in metrics], "iters": 2}
        page = await call(f"walk {endpoint}", f"events.{endpoint}", request)
        for step, earlier in enumerate((True, True, False, False)):
            beyond = {"scroll_id": page.get("scroll_id"), "navigate_earlier": earlier}
            page = await call(f"walk {endpoint}, {step}", f"events.{endpoint}", {**request, **beyond})
        await call(f"walk {endpoint} anew", f"events.{endpoint}", {**request, "refresh": True})
    await call("images, 2.1", "events.debug_images", {"task": first, "iters": 2}, version="2.1")
    for sample, chosen in (("plot_sample", {"metric": "pm"}), ("debug_image_sample", {"metric": "im", "variant": "a"})):
        page = await call(sample, f"events.get_{sample}", {"task": first, **chosen})
        for step, (earlier, iteration) in enumerate([(True, False), (True, True), (False, False), (False, True)]):
            how = {"navigate_earlier": earlier, "next_iteration": iteration}
            where = {"task": first, "scroll_id": page.get("scroll_id")}
            page = await call(f"{sample}, {step}", f"events.next_{sample}", {**where, **how})
        await call(f"{sample}, no scroll", f"events.next_{sample}", {"task": first, "scroll_id": "nope"})
        await call(f"{sample} at an iteration", f"events.get_{sample}", {"task": first, "iteration": 3, **chosen})
        await call(f"{sample} of no metric", f"events.get_{sample}", {"task": first, "metric": "nope", "variant": "a"})


async def _any_events(call: Recorder, tasks: list[str]) -> None:
    first, second, *_ = tasks
    for type in ("training_stats_scalar", "training_stats_vector", "training_debug_image", "plot", "log"):
        await call(f"metrics of {type}", "events.get_task_metrics", {"tasks": [first, second], "event_type": type})
        page: dict[str, Any] = {}
        for number in range(2):
            beyond = {"scroll_id": page.get("scroll_id"), "batch_size": 8, "order": ("asc", "desc")[type == "plot"]}
            request = {"task": first, "event_type": type, **beyond}
            page = await call(f"events of {type}, {number}", "events.get_task_events", request)
    await call("metrics of all", "events.get_task_metrics", {"tasks": [first, second]})
    for type in ("training_stats_scalar", "plot"):
        request = {"tasks": [first, second], "event_type": type}
        await call(f"metrics of several, {type}", "events.get_multi_task_metrics", request)
    await call("events of all types", "events.get_task_events", {"task": second, "batch_size": 400})
    await call("events of no type", "events.get_task_events", {"task": first, "event_type": "nope"})
    await call("events, no scroll", "events.get_task_events", {"task": first, "scroll_id": "nope"})


async def _documents(call: Recorder, tasks: list[str], model: str) -> None:
    # What is derived from events is written behind; it is of now once it was asked for.
    fields = ["name", "last_iteration", "last_metrics", "status"]
    for number, task in enumerate(tasks):
        await call(f"task {number}", "tasks.get_by_id", {"task": task})
    await call(
        "tasks by order", "tasks.get_all_ex", {"id": tasks, "order_by": ["-last_iteration"], "only_fields": fields}
    )
    await call(
        "tasks by pattern", "tasks.get_all_ex", {"name": "task [12]", "order_by": ["name"], "only_fields": fields}
    )
    await call("model", "models.get_by_id", {"model": model})
    await call("publish", "tasks.publish", {"task": tasks[1], "force": True})
    await call("write to a published one", "events.add", _scalar(tasks[1], 5000, "m", "v", 1))
    await call("write to it nevertheless", "events.add", _scalar(tasks[1], 5000, "m", "v", 1, allow_locked=True))


async def _life(call: Recorder) -> None:
    """Of a task with inputs of older clients: edited, run, reset while it runs, and moved out of its project."""
    older = {"parameters": {"l.r": 1, "TF_DEFINE/$b": "2"}, "model_desc": {"design": "net"}}
    fields = {"name": "older", "type": "controller", "execution": older}
    task = await call.make("tasks.create", "older", **fields)
    await call.make("tasks.create", "step", name="step", type="training", parent=task)
    await call.api.call("tasks.edit", {"task": task, "execution": {"parameters": {"x.$y": "3"}}})
    await call("task with older inputs", "tasks.get_all_ex", {"id": [task]}, version="2.8")
    await call.api.call("tasks.started", {"task": task})
    await call.api.call("tasks.reset", {"task": task})
    await call("task reset while it ran", "tasks.get_by_id", {"task": task})
    await call("task out of projects", "tasks.move", {"ids": [task], "project": None})
    await call("archived with steps", "tasks.archive", {"tasks": [task], "include_pipeline_steps": True})
    archived = {"name": "^(older|step)$", "system_tags": ["archived"], "order_by": ["name"], "only_fields": ["name"]}
    await call("archived", "tasks.get_all_ex", archived)
    await call.api.call("tasks.delete", {"task": task, "force": True, "include_pipeline_steps": True})


async def _reports(call: Recorder, tasks: list[str]) -> None:
    report = await call.make("reports.create", "report", name="a report", tags=["b", "a"], report="# Text")
    other = await call.api.call("reports.create", {"name": "another report", "tags": ["c"]})
    call.names |= {other["id"]: "other report", other["project_id"]: "home at the top"}
    moved = await call.api.call("reports.move", {"task": report, "project_name": "about"})
    call.names[moved["project_id"]] = "home"
    await call("reports", "reports.get_all_ex", {"order_by": ["name"], "only_fields": ["name", "project.name"]})
    await call("reports at the top", "reports.get_all_ex", {"project": [None], "only_fields": ["name"]})
    await call("reports of a home", "reports.get_all_ex", {"project": [moved["project_id"]], "only_fields": ["name"]})
    fields = ["name", "tags", "report"]
    await call(
        "reports by text", "reports.get_all_ex", {"_any_": {"pattern": "TEXT", "fields": fields}, "id": [report]}
    )
    await call("tags of reports", "reports.get_tags")
    shown = {"plots": {}, "debug_images": {"iters": 2}, "single_value_metrics": {}}
    curves = {"scalar_metrics_iter_histogram": {"samples": 10}}
    found = {"id": tasks, "order_by": ["name"], "only_fields": ["name"]}
    await call("data of tasks", "reports.get_task_data", {**found, **shown, **curves})
    await call("publish a report", "reports.publish", {"task": report})
    await call("write a published report", "reports.update", {"task": report, "report": "other"})
    await call("delete a published report", "reports.delete", {"task": report})
    await call("delete a report", "reports.delete", {"task": report, "force": True})
    await call("the home has gone", "projects.get_by_id", {"project": moved["project_id"]})


async def _delete(call: Recorder, tasks: list[str], model: str) -> None:
    first, second, third, empty = tasks
    await call("clear a log but stdout", "events.clear_task_log", {"task": first, "exclude_metrics": ["stdout"]})
    await call("what is left of it", "events.get_task_log", {"task": first, "batch_size": 3})
    await call("clear a log", "events.clear_task_log", {"task": first})
    await call("delete events", "events.delete_for_task", {"task": first})
    await call("histogram after", "events.scalar_metrics_iter_histogram", {"task": first})
    await call("plots after", "events.get_task_plots", {"task": first})
    await call("delete events of a published one", "events.delete_for_task", {"task": second})
    await call("delete them nevertheless", "events.delete_for_task", {"task": second, "allow_locked": True})
    await call("delete events of nobody", "events.delete_for_task", {"task": _NOBODY})
    await call("delete events of a model", "events.delete_for_model", {"model": model})
    await call("reset", "tasks.reset", {"task": third, "force": True})
    await call("delete a task", "tasks.delete", {"task": third, "force": True})
    await call("delete several", "tasks.delete_many", {"ids": [first, second, empty], "force": True})

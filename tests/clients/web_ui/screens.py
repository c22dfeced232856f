"""The web UI's calls, screen by screen, with the bodies that it sends and what it needs of the answers.

Recorded from the open web UI, version 2.5, in Chromium.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tests.clients.web_ui.shapes import Each, Either


@dataclass(frozen=True)
class Logged:
    """What the SDK logged: ids, in the order of the runs."""

    tasks: list[str]
    models: list[str]
    project: str


@dataclass(frozen=True)
class Ask:
    """A call, and the shape that its answer must have."""

    endpoint: str
    body: dict[str, Any]
    shape: Any
    then: Ask | None = None
    """Asked next, with the `scroll_id` of the answer."""


Screen = Callable[[Logged], Iterable[Ask]]


def _fields(names: str) -> list[str]:
    return names.split()


_ID = {"id": str}
_NAMED = {"id": str, "name": str}
_ACTIVE = ["__$not", "archived", "__$not", "pipeline", "__$not", "dataset", "__$not", "reports"]
_ROW_FIELDS = _fields(
    "name status system_tags project.name company last_change last_update started last_iteration tags user.name "
    "runtime.progress type parent.name parent.project.id parent.project.name"
)
_ROW = {
    "id": str,
    "name": str,
    "type": str,
    "status": str,
    "tags": list,
    "system_tags": list,
    "company": _ID,
    "project": _NAMED,
    "user": _NAMED,
    "runtime": dict,
    "last_iteration": int,
    "last_update": str,
    "last_change": str,
}
_MODEL_FIELDS = _fields(
    "company created last_change last_update framework id labels name ready tags system_tags task.name uri user.name "
    "parent comment project.name"
)
_MODEL = {
    "id": str,
    "name": str,
    "framework": "PyTorch",
    "ready": bool,
    "labels": {"cat": 1},
    "tags": list,
    "system_tags": list,
    "uri": str,
    "company": _ID,
    "project": _NAMED,
    "user": _NAMED,
    "task": _NAMED,
    "created": str,
    "last_update": str,
}
_COUNTS = {"total_tasks": int, "total_runtime": int, "completed_tasks_24h": int, "status_count": Each(int)}
_CURVE = {"name": str, "x": [int], "y": [float]}
_LAST_METRICS = Each(Each({"metric": str, "variant": str, "value": float, "min_value": float, "max_value": float}))
_PLOT = {"plot_str": str, "metric": str, "variant": str, "iter": int, "task": str}


def every_page(logged: Logged) -> Iterable[Ask]:
    yield Ask("login.supported_modes", {}, {"authenticated": True, "basic": {"enabled": bool, "guest": dict}})
    yield Ask("server.report_stats_option", {}, {"supported": bool, "enabled": bool})
    user = {"id": str, "name": str, "company": _NAMED, "role": str}
    yield Ask("users.get_current_user", {"get_supported_features": True}, {"user": user})
    yield Ask("users.get_preferences", {}, {"preferences": dict})
    for entity in ("task", "model"):
        yield Ask("projects.get_user_names", {"include_subprojects": True, "entity": entity}, {"users": [_NAMED]})
    yield Ask("server.info", {}, {"version": str, "build": str})
    changed = {"preferences": {"rootProjects.graphVariant": "x", "names.v1--DOT--2": True}, "return_updated": False}
    yield Ask("users.set_preferences", changed, {"updated": int})
    kept = {"rootProjects": {"graphVariant": "x"}, "names": {"v1--DOT--2": True}}
    yield Ask("users.get_preferences", {}, {"preferences": kept})


def dashboard(logged: Logged) -> Iterable[Ask]:
    projects = {
        "stats_for_state": "active",
        "include_stats": True,
        "check_own_contents": True,
        "order_by": ["featured", "-last_update"],
        "page": 0,
        "page_size": 6,
        "include_stats_filter": {"system_tags": ["-pipeline"]},
        "only_fields": ["name", "basename", "company", "user", "created", "default_output_destination"],
    }
    card = {"id": str, "name": str, "basename": str, "company": _ID, "user": _ID, "stats": {"active": _COUNTS}}
    yield Ask("projects.get_all_ex", projects, {"projects": [{**card, "own_tasks": int, "own_models": int}]})
    tasks = {
        "page": 0,
        "page_size": 5,
        "order_by": ["-last_update"],
        "status": ["published", "closed", "failed", "stopped", "in_progress", "completed"],
        "type": ["__$not", "annotation_manual", "__$not", "annotation", "__$not", "dataset_import"],
        "only_fields": ["type", "status", "created", "name", "id", "last_update", "started", "project.name"],
        "system_tags": ["-archived", "-pipeline"],
        "user": None,
    }
    recent = {"id": str, "name": str, "type": str, "status": "completed", "started": str, "project": _NAMED}
    yield Ask("tasks.get_all_ex", tasks, {"tasks": [recent]})
    reports = {
        "only_fields": ["name", "comment", "company", "tags", "report", "project.name", "user.name", "status"],
        "size": 6,
        "scroll_id": None,
        "order_by": ["-last_update"],
        "system_tags": ["__$not", "archived"],
    }
    yield Ask("reports.get_all_ex", reports, {"tasks": [], "scroll_id": str})


def projects(logged: Logged) -> Iterable[Ask]:
    hidden = {"filter": {"system_tags": ["-pipeline", "-dataset", "-Annotation"]}}
    yield Ask("projects.get_project_tags", hidden, {"tags": list})
    cards = {
        "stats_for_state": "active",
        "include_stats": True,
        "shallow_search": True,
        "permission_roots_only": True,
        "scroll_id": None,
        "size": 16,
        "order_by": ["featured", "-last_update"],
        "only_fields": ["name", "company", "user", "created", "default_output_destination", "basename", "system_tags"],
    }
    card = {"id": str, "name": "examples", "basename": "examples", "company": _ID, "system_tags": list}
    shape = {"projects": [{**card, "stats": {"active": _COUNTS}, "sub_projects": [_NAMED]}], "scroll_id": str}
    yield Ask(
        "projects.get_all_ex", cards, shape, Ask("projects.get_all_ex", cards, {"projects": [], "scroll_id": str})
    )


def project(logged: Logged) -> Iterable[Ask]:
    """Any page of a project."""
    filter = {"include_stats": True, "include_stats_filter": {"system_tags": ["-pipeline", "-dataset"]}}
    shown = {"id": logged.project, "name": "examples/browsed", "basename": "browsed", "company": {"id": str}}
    yield Ask(
        "projects.get_all_ex",
        {"id": [logged.project], **filter},
        {"projects": [{**shown, "stats": {"active": _COUNTS}}]},
    )
    above = {"_any_": {"fields": ["name"], "pattern": "^examples$"}, "search_hidden": True}
    yield Ask("projects.get_all_ex", above, {"projects": [{"id": str, "name": "examples"}]})
    yield Ask("projects.get_task_tags", {"projects": [logged.project]}, {"tags": ["nightly"]})
    yield Ask("projects.get_model_tags", {"projects": [logged.project]}, {"tags": list})
    for entity in ("task", "model"):
        users = {"projects": [logged.project], "entity": entity, "include_subprojects": False}
        yield Ask("projects.get_user_names", users, {"users": [_NAMED]})


def tasks_table(logged: Logged) -> Iterable[Ask]:
    within = {"projects": [logged.project]}
    yield Ask("tasks.get_types", within, {"types": ["training"]})
    yield Ask("projects.get_task_parents", {**within, "tasks_state": "active"}, {"parents": list})
    table = {
        "id": [],
        "project": [logged.project],
        "scroll_id": None,
        "refresh_scroll": True,
        "size": 30,
        "order_by": ["-last_update"],
        "type": [],
        "user": [],
        "system_tags": _ACTIVE,
        "include_subprojects": False,
        "search_hidden": False,
        "only_fields": _ROW_FIELDS,
    }
    page = {"tasks": [_ROW], "scroll_id": str}
    yield Ask(
        "tasks.get_all_ex", table, page, Ask("tasks.get_all_ex", {**table, "refresh_scroll": False}, {"tasks": []})
    )
    yield Ask("tasks.get_all_ex", table, page, Ask("tasks.get_all_ex", table, page))
    found = {"pattern": "RUN 1", "fields": ["id", "name", "comment", "system_tags", "models.output.model"]}
    yield Ask("tasks.get_all_ex", {**table, "_any_": found}, {"tasks": [{"name": "run 1"}]})
    archived = ["__$and", "archived", *_ACTIVE[2:]]
    yield Ask("tasks.get_all_ex", {**table, "system_tags": archived}, {"tasks": []})
    by_parameter = {"order_by": ["-hyperparams.Args.lr.value"], "only_fields": ["name", "hyperparams.Args.lr.value"]}
    value = {"hyperparams": {"Args": {"lr": {"value": "0.1"}}}}
    yield Ask("tasks.get_all_ex", {**table, **by_parameter}, {"tasks": [{"name": str, **value}]})
    columns = {"project": logged.project, "include_subprojects": True}
    series = {"metric": str, "metric_hash": str, "variant": str, "variant_hash": str}
    yield Ask("projects.get_unique_metric_variants", columns, {"metrics": [series]})
    yield Ask("projects.get_hyper_parameters", columns, {"parameters": [{"section": str, "name": str}]})


def task(logged: Logged) -> Iterable[Ask]:
    """Any tab of a task, and what asks every ten seconds whether it has changed."""
    fields = _fields(
        "id name user.name company type status status_changed status_message status_reason comment created "
        "last_update last_change completed started parent.name parent.project.name project.name output hyperparams "
        "execution.queue.name execution.queue.display_name script.binary script.repository script.tag script.branch "
        "script.version_num script.entry_point script.working_dir script.requirements system_tags published "
        "last_iteration last_worker tags active_duration container runtime"
    )
    params = Each(Each({"section": str, "name": str, "value": str}))
    script = {"binary": str, "repository": str, "entry_point": str, "requirements": dict}
    shown = {**_ROW, "active_duration": int, "hyperparams": params, "script": script, "container": dict}
    one = {"id": [logged.tasks[0]]}
    yield Ask("tasks.get_by_id_ex", {**one, "only_fields": fields}, {"tasks": [shown]})
    yield Ask("tasks.get_by_id_ex", {**one, "only_fields": ["script.diff"]}, {"tasks": [{"script": {"diff": str}}]})
    yield Ask("tasks.get_all_ex", {**one, "only_fields": ["last_change"]}, {"tasks": [{"last_change": str}]})


def configuration(logged: Logged) -> Iterable[Ask]:
    tasks = {"tasks": [logged.tasks[0]]}
    named = {"task": logged.tasks[0], "names": ["network"]}
    yield Ask("tasks.get_configuration_names", {**tasks, "skip_empty": False}, {"configurations": [named]})
    value = {"name": "network", "type": str, "value": str}
    shape = {"configurations": [{"task": logged.tasks[0], "configuration": [value]}]}
    yield Ask("tasks.get_configurations", {**tasks, "names": ["network"]}, shape)


def artifacts(logged: Logged) -> Iterable[Ask]:
    fields = _fields(
        "name project.id execution.artifacts models.output.name models.output.model.name models.output.model.design "
        "models.output.model.uri models.output.model.framework models.output.model.created models.input.name "
        "models.input.model.name models.input.model.uri models.input.model.task.id models.input.model.task.project.id"
    )
    artifact = {"key": "data", "type": str, "mode": "output", "uri": str, "timestamp": int, "display_data": []}
    model = {"id": str, "name": str, "uri": str, "framework": "PyTorch", "created": str}
    shown = {
        "execution": {"artifacts": [{**artifact, "content_size": int, "type_data": {"preview": str}}]},
        "models": {"input": [], "output": [{"name": str, "model": model}]},
        "project": _ID,
    }
    yield Ask("tasks.get_by_id_ex", {"id": [logged.tasks[0]], "only_fields": fields}, {"tasks": [shown]})


def scalars(logged: Logged) -> Iterable[Ask]:
    task = logged.tasks[0]
    single = {"metric": str, "variant": str, "value": float, "timestamp": int}
    values = {"tasks": [{"task": task, "values": [single]}]}
    yield Ask("events.get_task_single_value_metrics", {"tasks": [task]}, values)
    last = {"tasks": [{"id": task, "last_metrics": _LAST_METRICS}]}
    yield Ask("tasks.get_all_ex", {"id": [task], "only_fields": ["last_metrics"]}, last)
    curves = {"loss": {"train": {**_CURVE, "name": "train", "x": [0, 1, 2, 3, 4]}, "val": _CURVE}}
    yield Ask("events.scalar_metrics_iter_histogram", {"task": task, "key": "iter"}, curves)
    yield Ask("events.scalar_metrics_iter_histogram", {"task": task, "key": "timestamp"}, {"loss": Each(_CURVE)})
    raw = {"task": task, "metric": {"metric": "loss"}, "key": "iter", "count_total": True, "batch_size": 200000}
    points = {"variants": {"train": {"iter": [0, 1, 2, 3, 4], "y": [float]}, "val": {"iter": [int], "y": [float]}}}
    rest = Ask("events.scalar_metrics_iter_raw", raw, {"returned": 0, "variants": {}})
    yield Ask("events.scalar_metrics_iter_raw", raw, {**points, "returned": 10, "total": 10, "scroll_id": str}, rest)


def plots(logged: Logged) -> Iterable[Ask]:
    # With a `total` that its pages do not reach, the UI would ask for ever.
    shape = {"plots": [_PLOT], "returned": 2, "total": 2}
    yield Ask("events.get_task_plots", {"task": logged.tasks[0], "iters": 1}, shape)


def debug_samples(logged: Logged) -> Iterable[Ask]:
    task = logged.tasks[0]
    metrics = {"metrics": [{"task": task, "metrics": ["images"]}]}
    yield Ask("events.get_task_metrics", {"tasks": [task], "event_type": "training_debug_image"}, metrics)
    pages = {"metrics": [{"task": task, "metric": "images"}], "iters": 3, "navigate_earlier": True}
    event = {"url": str, "metric": "images", "variant": "noise", "timestamp": int, "iter": int, "task": task}
    shown = {"metrics": [{"task": task, "iterations": [{"iter": int, "events": [event]}]}], "scroll_id": str}
    earlier = Ask("events.debug_images", {**pages, "refresh": False}, shown)
    yield Ask("events.debug_images", {**pages, "scroll_id": None, "refresh": True}, shown, earlier)


def image_viewer(logged: Logged) -> Iterable[Ask]:
    task = logged.tasks[0]
    sample = {"task": task, "iteration": 4, "metric": "images", "variant": "noise"}
    event = {"url": str, "metric": "images", "variant": "noise", "iter": int, "timestamp": int}
    shown = {"event": event, "scroll_id": str, "min_iteration": 0, "max_iteration": 4}
    earlier = {"task": task, "navigate_earlier": True}
    body = {**sample, "scroll_id": None, "navigate_current_metric": True}
    next_one = Ask("events.next_debug_image_sample", earlier, {**shown, "event": {**event, "iter": 3}})
    yield Ask("events.get_debug_image_sample", body, {**shown, "event": {**event, "iter": 4}}, next_one)


def console(logged: Logged) -> Iterable[Ask]:
    body = {"task": logged.tasks[0], "batch_size": 1000, "navigate_earlier": True}
    line = {"msg": str, "timestamp": int, "worker": str}
    yield Ask("events.get_task_log", body, {"events": [line], "returned": int, "total": int})
    yield Ask("events.get_task_log", {**body, "from_timestamp": 1}, {"events": [], "returned": 0})


def compare_details(logged: Logged) -> Iterable[Ask]:
    fields = _fields(
        "id name type status last_update project.name models.input.name models.output.name models.output.model.name "
        "models.output.model.uri models.output.model.framework models.output.model.design models.input.model.name "
        "models.input.model.labels execution.artifacts container script tags system_tags published last_iteration "
        "configuration last_change completed created user.name parent.name execution.queue.name "
        "execution.queue.display_name active_duration started status_message status_reason last_worker runtime"
    )
    artifact = {"key": str, "uri": str, "display_data": list}
    model = {"name": str, "uri": str, "framework": str}
    details = {
        **{name: shape for name, shape in _ROW.items() if name != "company"},
        "models": {"input": [], "output": [{"name": str, "model": model}]},
        "execution": {"artifacts": [artifact]},
        "container": dict,
        "script": {"requirements": dict},
        "configuration": {"network": {"value": str}},
    }
    yield Ask("tasks.get_all_ex", {"id": logged.tasks, "only_fields": fields}, {"tasks": [details]})
    header = ["name", "tags", "project", "system_tags", "last_update", "created"]
    shape = {"name": str, "tags": list, "project": _ID, "system_tags": list, "last_update": str, "created": str}
    yield Ask("tasks.get_all_ex", {"id": logged.tasks, "only_fields": header}, {"tasks": [shape]})


def compare_values(logged: Logged) -> Iterable[Ask]:
    values = ["last_metrics", "name", "status", "completed", "last_update", "last_iteration", "project.name", "tags"]
    shape = {"name": str, "status": str, "last_metrics": _LAST_METRICS, "project": _NAMED, "last_iteration": int}
    yield Ask("tasks.get_all_ex", {"id": logged.tasks, "only_fields": values}, {"tasks": [shape]})
    params = {"name": str, "hyperparams": Each(Each({"value": str}))}
    fields = ["id", "name", "type", "status", "last_update", "project.name", "tags", "last_iteration", "hyperparams"]
    yield Ask("tasks.get_all_ex", {"id": logged.tasks, "only_fields": fields}, {"tasks": [params]})


def compare_scalars(logged: Logged) -> Iterable[Ask]:
    tasks = {"tasks": logged.tasks, "model_events": False}
    series = {"metric": str, "variants": [str]}
    kinds = {**tasks, "event_type": "training_stats_scalar"}
    yield Ask("events.get_multi_task_metrics", kinds, {"metrics": [series]})
    metrics = [{"metric": "Summary", "variants": ["best"]}, {"metric": "loss", "variants": ["train", "val"]}]
    single = {"metric": "Summary", "variant": "best", "value": 0.9}
    values = {"tasks": [{"task": str, "task_name": str, "values": [single]}]}
    yield Ask("events.get_task_single_value_metrics", {**tasks, "metrics": metrics}, values)
    body = {**tasks, "metrics": metrics, "key": "iter"}
    curves = dict.fromkeys(logged.tasks, _CURVE)
    shape = {"metrics": {"loss": {"train": curves, "val": curves}}}
    yield Ask("events.multi_task_scalar_metrics_iter_histogram", body, shape)


def compare_plots(logged: Logged) -> Iterable[Ask]:
    tasks = {"tasks": logged.tasks, "model_events": False}
    kinds = {"metrics": [{"metric": str, "variants": [str]}]}
    yield Ask("events.get_multi_task_metrics", {**tasks, "event_type": "plot"}, kinds)
    metrics = [{"metric": "confusion", "variants": ["c"]}, {"metric": "table", "variants": ["t"]}]
    body = {**tasks, "metrics": metrics, "last_iters_per_task_metric": True, "iters": 1}
    of_tasks = {task: {"1": {"name": str, "plots": [_PLOT]}} for task in logged.tasks}
    shape = {"plots": {"confusion": {"c": of_tasks}, "table": {"t": of_tasks}}, "returned": int, "scroll_id": str}
    rest = Ask("events.get_multi_task_plots", body, {"returned": 0, "plots": dict, "scroll_id": str})
    yield Ask("events.get_multi_task_plots", body, shape, rest)


def compare_debug_samples(logged: Logged) -> Iterable[Ask]:
    body = {"tasks": logged.tasks, "event_type": "training_debug_image"}
    yield Ask("events.get_task_metrics", body, {"metrics": [{"task": str, "metrics": ["images"]}]})


def models_table(logged: Logged) -> Iterable[Ask]:
    yield Ask("models.get_frameworks", {"projects": [logged.project]}, {"frameworks": ["PyTorch"]})
    table = {
        "id": [],
        "project": [logged.project],
        "scroll_id": None,
        "refresh_scroll": False,
        "size": 30,
        "include_subprojects": False,
        "order_by": ["-created"],
        "system_tags": ["-archived"],
        "only_fields": _MODEL_FIELDS,
        "ready": None,
    }
    rest = Ask("models.get_all_ex", table, {"models": [], "scroll_id": str})
    yield Ask("models.get_all_ex", table, {"models": [_MODEL], "scroll_id": str}, rest)


def model(logged: Logged) -> Iterable[Ask]:
    """The tabs of a model."""
    one = logged.models[0]
    metadata = {"accuracy": {"key": "accuracy", "type": "float", "value": "0.9"}}
    fields = [*_MODEL_FIELDS, "task.project", "design", "metadata"]
    yield Ask(
        "models.get_by_id_ex", {"id": [one], "only_fields": fields}, {"models": [{**_MODEL, "metadata": metadata}]}
    )
    yield Ask("tasks.get_all_ex", {"models.input.model": one, "id": [], "scroll_id": None, "size": 30}, {"tasks": []})
    yield Ask("events.get_task_single_value_metrics", {"tasks": [one], "model_events": True}, {"tasks": list})
    last = {"models": [{"last_metrics": _LAST_METRICS}]}
    yield Ask("models.get_all_ex", {"id": [one], "only_fields": ["last_metrics"]}, last)
    curves = {"task": one, "key": "iter", "model_events": True}
    yield Ask("events.scalar_metrics_iter_histogram", curves, {"model metric": {"v": _CURVE}})
    yield Ask("events.get_task_plots", {"task": one, "model_events": True}, {"plots": list, "total": int})


def compare_models(logged: Logged) -> Iterable[Ask]:
    fields = [*_MODEL_FIELDS, "last_iteration", "task.project", "metadata"]
    yield Ask(
        "models.get_all_ex", {"id": logged.models, "only_fields": fields}, {"models": [{"name": str, "tags": list}]}
    )
    users = {"models.input.model": logged.models, "only_fields": ["name", "models.input.model"]}
    yield Ask("tasks.get_all_ex", users, {"tasks": []})
    kinds = {"tasks": logged.models, "event_type": "training_stats_scalar", "model_events": True}
    yield Ask("events.get_multi_task_metrics", kinds, {"metrics": [{"metric": "model metric", "variants": ["v"]}]})


def datasets_and_pipelines(logged: Logged) -> Iterable[Ask]:
    for kind, type in (("dataset", "data_processing"), ("pipeline", "controller")):
        yield Ask("projects.get_project_tags", {"filter": {"system_tags": [kind]}}, {"tags": list})
        cards = {
            "stats_for_state": "active",
            "include_stats": True,
            "shallow_search": False,
            "scroll_id": None,
            "size": 16,
            "order_by": ["featured", "-last_update"],
            "only_fields": ["name", "company", "user", "created", "basename", "system_tags", "tags", "last_update"],
            "search_hidden": True,
            "name": f"/\\.{kind}s/",
            "system_tags": [kind],
            "include_stats_filter": {"system_tags": [kind], "type": [type]},
            "stats_with_children": False,
        }
        yield Ask("projects.get_all_ex", cards, {"projects": []})


def queues_and_workers(logged: Logged) -> Iterable[Ask]:
    now = int(time.time())
    span = {"from_date": now - 3 * 3600, "to_date": now + 1, "interval": 40}
    counts = {"dates": list, "counts": list}
    yield Ask("workers.get_all", {}, {"workers": list})
    yield Ask("workers.get_activity_report", span, {"total": counts, "active": counts})
    fields = ["display_name", "last_update", "name", "tags", "workers", "entries"]
    entry = {"task": _NAMED, "added": str}
    queue = {"id": str, "name": "default", "display_name": Either(None, str), "tags": list, "workers": list}
    body = {"only_fields": fields, "count_task_entries": True, "max_task_entries": 1}
    yield Ask("queues.get_all_ex", body, {"queues": [{**queue, "entries": [entry], "entries_count": 1}]})
    chart = {"queue": Either(None, str), "dates": list, "avg_waiting_times": list, "queue_lengths": list}
    yield Ask("queues.get_queue_metrics", span, {"queues": [chart]})


def workloads(logged: Logged) -> Iterable[Ask]:
    body = {
        "projects": [logged.project],
        "include_development": True,
        "from_date": "2026-11-16T00:00:00.000Z",
        "usage_fields": ["duration"],
    }
    usage = {"total": list, "series": list}
    yield Ask("organization.get_project_workloads", body, {"projects": usage, "users": usage, "queues": usage})


def serving(logged: Logged) -> Iterable[Ask]:
    yield Ask("serving.get_endpoints", {}, {"endpoints": []})
    yield Ask("serving.get_loading_instances", {}, {"instances": []})


def settings(logged: Logged) -> Iterable[Ask]:
    yield Ask("auth.get_credentials", {}, {"credentials": [{"access_key": str, "label": str}]})
    yield Ask("storage.get_settings", {}, {"settings": dict})


def plots_in_reports(logged: Logged) -> Iterable[Ask]:
    """What is embedded in reports is shown by a page of its own."""
    one, both = {"id": logged.tasks[:1]}, {"id": logged.tasks}
    values = {"single_value_metrics": [{"task": str, "values": [{"variant": "best", "value": 0.9}]}]}
    yield Ask("reports.get_task_data", {**one, "model_events": False, "single_value_metrics": {}}, values)
    loss = {"metrics": [{"metric": "loss", "variants": ["train", "val"]}], "key": "iter"}
    curves = dict.fromkeys(logged.tasks, _CURVE)
    shape: Any = {"scalar_metrics_iter_histogram": {"loss": {"train": curves, "val": curves}}}
    yield Ask("reports.get_task_data", {**both, "model_events": False, "scalar_metrics_iter_histogram": loss}, shape)
    plots = {"iters": 1, "metrics": [{"metric": "confusion", "variants": ["c"]}]}
    shape = {"plots": {"confusion": {"c": {logged.tasks[0]: {"1": {"name": str, "plots": [_PLOT]}}}}}}
    yield Ask("reports.get_task_data", {**one, "model_events": False, "plots": plots}, shape)
    images = {"iters": 1, "metrics": [{"metric": "images", "variants": ["noise"]}]}
    image = {"iter": 4, "events": [{"url": str, "variant": "noise"}]}
    shape = {"debug_images": [{"task": logged.tasks[0], "iterations": [image]}]}
    yield Ask("reports.get_task_data", {**one, "debug_images": images}, shape)
    fields = ["last_metrics", "name", "last_iteration", "project", "hyperparams.Args.lr"]
    compared = {"name": str, "last_metrics": _LAST_METRICS, "hyperparams": {"Args": {"lr": {"value": "0.1"}}}}
    yield Ask("reports.get_task_data", {**both, "only_fields": fields}, {"tasks": [compared]})


def search(logged: Logged) -> Iterable[Ask]:
    body = {
        "projects": {"search_hidden": False, "system_tags": ["-pipeline", "-dataset"]},
        "tasks": {"search_hidden": False, "system_tags": ["-archived", "-pipeline", "-dataset"]},
        "models": {"system_tags": ["-archived"]},
        "datasets": {"name": "/\\.datasets/", "search_hidden": True, "system_tags": ["dataset"]},
        "pipeline_runs": {"search_hidden": True, "system_tags": [None, "pipeline"]},
        "reports": {"system_tags": ["-archived"], "search_hidden": False},
        "limit": 1,
    }
    counts = {"projects": 1, "tasks": 1, "models": 1, "datasets": 0, "pipeline_runs": int, "reports": 0}
    yield Ask("organization.get_entities_count", body, counts)


SCREENS: tuple[Screen, ...] = (
    every_page,
    dashboard,
    projects,
    project,
    tasks_table,
    task,
    configuration,
    artifacts,
    scalars,
    plots,
    debug_samples,
    image_viewer,
    console,
    compare_details,
    compare_values,
    compare_scalars,
    compare_plots,
    compare_debug_samples,
    models_table,
    model,
    compare_models,
    datasets_and_pipelines,
    queues_and_workers,
    workloads,
    serving,
    settings,
    plots_in_reports,
    search,
)

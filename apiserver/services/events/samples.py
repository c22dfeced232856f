"""Reading plots and debug images: the newest ones, and walks over iterations."""

from __future__ import annotations

from functools import partial
from typing import Any

import orjson

from apiserver.common import answers
from apiserver.events.model import EventType, MetricSelection, SamplePosition, Selection
from apiserver.events.queries import SeriesQuery
from apiserver.reading import samples
from apiserver.reading.scroll import InvalidScroll
from apiserver.services.backend import Call, endpoint
from apiserver.services.events import owners, picture_links
from apiserver.stores.events.sizes import bytes_of_all, may_go_on


@endpoint("events.get_task_plots", "2.1")
async def get_task_plots(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    """The newest plots: with `no_scroll` all of them, else a page. `total` is one too high while there are more pages.

    A scroll_id also holds whether `task` is a model, because the web UI does not send it again.
    """
    selection, iterations = owners.selection(request.get("metrics")), request["iters"]
    query, scrolls = (
        ("get_task_plots", call.identity.company, request["task"], selection, iterations),
        call.backend.scrolls,
    )
    model, seen, after = request["model_events"], 0, None
    if request.get("scroll_id"):
        model, seen, position = scrolls.decode(query, request["scroll_id"])
        after = SamplePosition(*position)
    owner = await owners.one(call, {**request, "model_events": model})
    read = partial(call.backend.events.latest_samples, SeriesQuery(owner, EventType.PLOT, selection), iterations)
    if request["no_scroll"]:
        plots, goes_on = await samples.all_of(lambda behind: read(behind or after)), False
    else:
        plots = await read(after)
        answers.hold(bytes_of_all(plots))
        goes_on = may_go_on(plots, samples.MOST)
    seen += len(plots)
    encode = await picture_links.plot_encoder(call)
    return {
        "plots": await encode(plots),
        "returned": len(plots),
        "total": seen + goes_on,
        "scroll_id": scrolls.encode(query, (model, seen, plots[-1].position)) if goes_on else None,
    }


@endpoint("events.debug_images", "2.1")
async def debug_images_2_1(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    owner = await owners.one(call, request)
    query = ("debug_images 2.1", owner, request["iters"])
    end = bool(request.get("scroll_id")) and call.backend.scrolls.decode(query, request["scroll_id"])
    series = SeriesQuery(owner, EventType.IMAGE)
    page = await samples.walk(call.backend.events, series, iterations=request["iters"], seen=None, earlier=True)
    images = [orjson.Fragment(sample.document) for _, found in page.iterations for sample in found]
    shown = [] if end else images
    return {
        "task": owner.id,
        "images": shown,
        "returned": len(shown),
        "total": len(images),
        "scroll_id": call.backend.scrolls.encode(query, True),
    }


@endpoint("events.debug_images", "2.7")
async def debug_images(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return await _walk(call, request, EventType.IMAGE)


@endpoint("events.plots", "2.20")
async def plots(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return await _walk(call, request, EventType.PLOT)


async def _walk(call: Call, request: dict[str, Any], type: EventType) -> dict[str, Any]:
    selections = _selections(request["metrics"])
    query = (type, call.identity.company, request["model_events"], sorted(selections.items()))
    seen = {} if request["refresh"] else _seen(call, query, request.get("scroll_id"))
    metrics = await walk_each(call, request, type, selections, seen)
    return {"metrics": metrics, "scroll_id": call.backend.scrolls.encode(query, seen)}


async def walk_each(
    call: Call,
    request: dict[str, Any],
    type: EventType,
    selections: dict[str, Selection],
    seen: dict[str, samples.Seen],
) -> list[dict[str, Any]]:
    """The next iterations of each task: `[{task, iterations}]`. `seen` has where each walk is, and is moved on."""
    model = request["model_events"]
    documents = await owners.require(call, list(selections), model=model)
    answer = []
    encode = await picture_links.plot_encoder(call)
    for id, selection in selections.items():
        page = await samples.walk(
            call.backend.events,
            SeriesQuery(owners.owner(documents[id], model=model), type, selection),
            iterations=request["iters"],
            seen=seen.get(id),
            earlier=request["navigate_earlier"],
        )
        if page.seen is not None:
            seen[id] = page.seen
        iterations = [{"iter": iter, "events": await encode(events)} for iter, events in page.iterations]
        answer.append({"task": id, "iterations": iterations})
    return answer


def _seen(call: Call, query: tuple[Any, ...], scroll_id: str | None) -> dict[str, samples.Seen]:
    """By task, where its walk is. An invalid scroll_id, or one of another walk, begins a new walk."""
    try:
        seen: dict[str, samples.Seen] = call.backend.scrolls.decode(query, scroll_id) if scroll_id else {}
    except InvalidScroll:
        return {}
    return seen


def _selections(metrics: list[dict[str, Any]]) -> dict[str, Selection]:
    """By task, the requested series. An entry without a metric means all of the task's metrics."""
    selections: dict[str, list[MetricSelection] | None] = {}
    for entry in metrics:
        selection_so_far = selections.setdefault(entry["task"], [])
        if "metric" not in entry:
            selections[entry["task"]] = None
        elif selection_so_far is not None:
            selection_so_far.append(MetricSelection(entry["metric"], tuple(entry.get("variants") or ())))
    return {task: selection or () for task, selection in selections.items()}

"""Navigating debug images and plots one at a time: the requested one, then its neighbours."""

from __future__ import annotations

from typing import Any, Protocol

import orjson

from apiserver.events.model import EventType, Owner
from apiserver.reading import neighbours
from apiserver.reading.neighbours import Place, ShownSamples
from apiserver.services.backend import Call, endpoint
from apiserver.services.events import owners, picture_links
from apiserver.stores.events.protocols.samples import SampleStore


class FindNeighbour(Protocol):
    """Finds the neighbour of a place: the one before or behind it."""

    async def __call__(
        self, store: SampleStore, owner: Owner, place: Place, *, earlier: bool, next_iteration: bool
    ) -> ShownSamples | None: ...


@endpoint("events.get_debug_image_sample", "2.12")
async def get_debug_image_sample(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    owner, place = await _asked(call, request, EventType.IMAGE)
    found = await neighbours.image_at(call.backend.events, owner, place)
    return _image(call, owner, found, place)


@endpoint("events.next_debug_image_sample", "2.12")
async def next_debug_image_sample(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return _image(call, *await _next(call, request, EventType.IMAGE, neighbours.next_image))


@endpoint("events.get_plot_sample", "2.20")
async def get_plot_sample(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    owner, place = await _asked(call, request, EventType.PLOT)
    found = await neighbours.plots_at(call.backend.events, owner, place)
    return await _plots(call, owner, found, place)


@endpoint("events.next_plot_sample", "2.20")
async def next_plot_sample(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return await _plots(call, *await _next(call, request, EventType.PLOT, neighbours.next_plots))


def _query(type: EventType, owner: Owner) -> tuple[Any, ...]:
    return ("sample", type, owner)


async def _asked(call: Call, request: dict[str, Any], type: EventType) -> tuple[Owner, Place]:
    """The owner and the place that the request names. A scroll_id adds nothing to them, but must be valid."""
    owner = await owners.one(call, request)
    if request.get("scroll_id"):
        call.backend.scrolls.decode(_query(type, owner), request["scroll_id"])
    variant, current = request.get("variant", ""), request["navigate_current_metric"]
    return owner, Place(request.get("iteration"), request["metric"], variant, current_metric=current)


async def _next(
    call: Call, request: dict[str, Any], type: EventType, find: FindNeighbour
) -> tuple[Owner, ShownSamples | None, Place]:
    """The owner, the neighbour of the scroll_id's place, and that place."""
    owner = await owners.one(call, request)
    place = Place(*call.backend.scrolls.decode(_query(type, owner), request["scroll_id"]))
    earlier, next_iteration = request["navigate_earlier"], request["next_iteration"]
    found = await find(call.backend.events, owner, place, earlier=earlier, next_iteration=next_iteration)
    return owner, found, place


def _image(call: Call, owner: Owner, found: ShownSamples | None, place: Place) -> dict[str, Any]:
    event = orjson.Fragment(found.samples[0].document) if found else None
    return {"event": event, **_place(call, EventType.IMAGE, owner, found, place)}


async def _plots(call: Call, owner: Owner, found: ShownSamples | None, place: Place) -> dict[str, Any]:
    encode = await picture_links.plot_encoder(call)
    events = await encode(found.samples) if found else []
    return {"events": events, **_place(call, EventType.PLOT, owner, found, place)}


def _place(call: Call, type: EventType, owner: Owner, shown: ShownSamples | None, place: Place) -> dict[str, Any]:
    """The fields of the answer that say where the walk is now. If nothing was found, it stays where it was."""
    return {
        "scroll_id": call.backend.scrolls.encode(_query(type, owner), shown.place if shown else place),
        "min_iteration": shown.min_iteration if shown else None,
        "max_iteration": shown.max_iteration if shown else None,
    }

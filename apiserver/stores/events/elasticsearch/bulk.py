"""Sends items in requests of bounded size. Items that nodes refuse for the moment are sent again, for some seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import chain, islice
from typing import NamedTuple

from apiserver.events.model import JsonObject
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.errors import busy, needs_hands
from apiserver.stores.events.parts import in_parts

#: Characters of a request. Larger requests are no faster if several are under way.
REQUEST = 2**20 - 2**12
_SENDERS = 4
#: Seconds between attempts while nodes are overloaded.
PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)

#: An item is refused for the moment: too many requests, no active shard, a timeout.
_FOR_NOW = frozenset({429, 503, 504})
_CONFLICT = 409
#: An item is refused because of this server's rights, or because its index is gone.
_NOT_THE_ITEM = frozenset({401, 403, 404})


class Refusal(NamedTuple):
    """Why an item will never be done."""

    item: str
    reason: str


async def send(
    cluster: Cluster,
    index: str,
    items: Iterable[str],
    *,
    in_order: bool,
    known: list[str] | None = None,
    places: dict[str, int] | None = None,
) -> list[Refusal]:
    """Send the items, for the index unless they name another; return those that were refused for good.

    Raises EventStoreBusy if some of them cannot be done now. All items may be sent again then. Several requests are
    under way at once, unless items must be done `in_order`. Items whose conditions are not met go into `known`. Without
    that, those to create are taken as done, and others are sent again. The place of each item that was done goes into
    `places`.
    """
    answered = _Answered([], known, places)
    parts = in_parts(items, len, REQUEST)
    first = [*islice(parts, 2)]
    left = chain(first, parts)

    async def send_parts() -> None:
        for part in left:
            await _send_part(cluster, index, part, answered)

    if in_order or len(first) < 2:  # one part needs one sender
        await send_parts()
        return answered.refused
    for outcome in await asyncio.gather(*(send_parts() for _ in range(_SENDERS)), return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
    return answered.refused


class _Answered(NamedTuple):
    """What nodes said of the items, as `send` describes it."""

    refused: list[Refusal]
    known: list[str] | None
    places: dict[str, int] | None


async def _send_part(cluster: Cluster, index: str, items: list[str], answered: _Answered) -> None:
    for pause in (*PAUSES, None):
        try:
            answers = await cluster.bulk(index, "".join(items).encode())
        except EventStoreBusy as refusal:
            if pause is None or not refusal.overloaded:
                raise
        else:
            items = _left(items, answers, answered, last=pause is None)
            if not items:
                return
        assert pause is not None
        await asyncio.sleep(pause)


def _left(items: list[str], answers: list[JsonObject], answered: _Answered, *, last: bool) -> list[str]:
    """The items to send again, by their answers. Raises EventStoreBusy if sending again has no use."""
    left: list[str] = []
    for item, answer in zip(items, answers, strict=True):
        status = answer["status"]
        if status < 300:
            if answered.places is not None:
                answered.places[item] = answer["_seq_no"]
            continue
        if status == _CONFLICT and (answered.known is not None or item.startswith('{"create"')):
            if answered.known is not None:
                answered.known.append(item)
            continue
        error = answer.get("error", {})
        type, reason = str(error.get("type")), error.get("reason")
        for_now = (status in _FOR_NOW or status == _CONFLICT) and not needs_hands(type)
        if for_now and not last:
            left.append(item)
        elif for_now or needs_hands(type) or not 400 <= status < 500 or status in _NOT_THE_ITEM:
            raise busy(status, type, reason, writing=True)
        else:
            answered.refused.append(Refusal(item, f"Elasticsearch refused the event: {type}: {reason}"))
    return left

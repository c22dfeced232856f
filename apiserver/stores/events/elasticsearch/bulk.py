"""Sends items in requests of bounded size. Items that nodes refuse for the moment are sent again, for some seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from itertools import chain, islice
from typing import NamedTuple

from apiserver.events.model import JsonObject
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.errors import busy, needs_hands
from apiserver.stores.events.parts import in_parts

_SENDERS = 4

#: An item is refused for the moment: too many requests, no active shard, a timeout.
_FOR_NOW = frozenset({429, 503, 504})
_CONFLICT = 409
#: An item is refused because of this server's rights, or because its index is gone.
_NOT_THE_ITEM = frozenset({401, 403, 404})

#: Takes the answer to an item, and tells whether nothing is left to do for the item.
_Settle = Callable[[str, JsonObject], bool]


class Refusal(NamedTuple):
    """Why an item will never be done."""

    item: str
    reason: str


class Outcomes(NamedTuple):
    """What came of items that have conditions."""

    done: list[tuple[str, int]]
    """Each with the place of its write."""
    unmet: list[str]
    """Those whose conditions are not met."""
    refused: list[Refusal]


async def send(cluster: Cluster, index: str, items: Iterable[str], *, in_order: bool) -> list[Refusal]:
    """Send the items, for the index unless they name another; return those that were refused for good.

    Raises EventStoreBusy if some of them cannot be done now. All items may be sent again then. Several requests are
    under way at once, unless items must be done `in_order`. An item that creates a document which is there is done.
    """
    return await _send(cluster, index, items, _is_done, in_order=in_order)


def _is_done(item: str, answer: JsonObject) -> bool:
    return answer["status"] < 300 or (answer["status"] == _CONFLICT and item.startswith('{"create"'))


async def send_on_conditions(cluster: Cluster, index: str, items: Iterable[str]) -> Outcomes:
    """Send items, each of which says what it is written over, in any order. Raises as `send` does."""
    done: list[tuple[str, int]] = []
    unmet: list[str] = []

    def settle(item: str, answer: JsonObject) -> bool:
        if answer["status"] < 300:
            done.append((item, answer["_seq_no"]))
        elif answer["status"] == _CONFLICT:
            unmet.append(item)
        else:
            return False
        return True

    return Outcomes(done, unmet, await _send(cluster, index, items, settle, in_order=False))


async def _send(
    cluster: Cluster, index: str, items: Iterable[str], settle: _Settle, *, in_order: bool
) -> list[Refusal]:
    refused: list[Refusal] = []
    parts = in_parts(items, len, cluster.bounds.request_characters)
    first = [*islice(parts, 2)]
    left = chain(first, parts)

    async def send_parts() -> None:
        for part in left:
            refused.extend(await _send_part(cluster, index, part, settle))

    if in_order or len(first) < 2:  # one part needs one sender
        await send_parts()
        return refused
    for outcome in await asyncio.gather(*(send_parts() for _ in range(_SENDERS)), return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
    return refused


async def _send_part(cluster: Cluster, index: str, items: list[str], settle: _Settle) -> list[Refusal]:
    refused: list[Refusal] = []
    for pause in (*cluster.bounds.send_pauses, None):
        try:
            answers = await cluster.bulk(index, "".join(items).encode())
        except EventStoreBusy as refusal:
            if pause is None or not refusal.overloaded:
                raise
        else:
            unsettled = [both for both in zip(items, answers, strict=True) if not settle(*both)]
            items = _left(unsettled, refused, last=pause is None)
            if not items:
                break
        assert pause is not None
        await asyncio.sleep(pause)
    return refused


def _left(unsettled: list[tuple[str, JsonObject]], refused: list[Refusal], *, last: bool) -> list[str]:
    """The items to send again, by their answers. Raises EventStoreBusy if sending again has no use."""
    left: list[str] = []
    for item, answer in unsettled:
        status, error = answer["status"], answer.get("error", {})
        type, reason = str(error.get("type")), error.get("reason")
        for_now = (status in _FOR_NOW or status == _CONFLICT) and not needs_hands(type)
        if for_now and not last:
            left.append(item)
        elif for_now or needs_hands(type) or not 400 <= status < 500 or status in _NOT_THE_ITEM:
            raise busy(status, type, reason, writing=True)
        else:
            refused.append(Refusal(item, f"Elasticsearch refused it: {type}: {reason}"))
    return left

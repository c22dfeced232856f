"""Sending items: in requests of bounded size, what is refused for now again and again for a while, each by itself."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping

from apiserver.events.model import JsonObject
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.elasticsearch.cluster import Cluster, busy, needs_hands
from apiserver.stores.events.elasticsearch.parts import in_parts

#: Characters of a request. Larger ones go no faster when several are under way.
REQUEST = 2**20 - 2**12
_SENDERS = 4
#: Seconds between attempts, while nodes are too busy.
PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)

#: Refused for now: too many requests, no active shard, a timeout.
_FOR_NOW = frozenset({429, 503, 504})
_CONFLICT = 409
#: Refused for what this server may, or for an index that is gone.
_NOT_THE_ITEM = frozenset({401, 403, 404})


async def send(cluster: Cluster, index: str, items: Iterable[str], *, in_order: bool) -> Mapping[str, int]:
    """Have the items done, in the index unless they name another; how many were refused for good, by reason.

    Raises EventStoreBusy when some of them cannot be done now. All may be sent again. Unless they are to be done
    `in_order`, several requests are under way at once.
    """
    refused: Counter[str] = Counter()
    parts = in_parts(items, len, REQUEST)

    async def send_parts() -> None:
        for part in parts:
            await _send_part(cluster, index, part, refused)

    senders = [send_parts() for _ in range(1 if in_order else _SENDERS)]
    for outcome in await asyncio.gather(*senders, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
    return refused


async def _send_part(cluster: Cluster, index: str, items: list[str], refused: Counter[str]) -> None:
    for pause in (*PAUSES, None):
        try:
            answers = await cluster.bulk(index, "".join(items).encode())
        except EventStoreBusy as refusal:
            if pause is None or not refusal.overloaded:
                raise
        else:
            items = _left(items, answers, refused, last=pause is None)
            if not items:
                return
        assert pause is not None
        await asyncio.sleep(pause)


def _left(items: list[str], answers: list[JsonObject], refused: Counter[str], *, last: bool) -> list[str]:
    """The items to send again, by their answers. Raises EventStoreBusy when that has no use."""
    left: list[str] = []
    for item, answer in zip(items, answers, strict=True):
        status = answer["status"]
        if status < 300 or (status == _CONFLICT and item.startswith('{"create"')):
            continue
        error = answer.get("error", {})
        type, reason = str(error.get("type")), error.get("reason")
        for_now = (status in _FOR_NOW or status == _CONFLICT) and not needs_hands(type)
        if for_now and not last:
            left.append(item)
        elif for_now or needs_hands(type) or not 400 <= status < 500 or status in _NOT_THE_ITEM:
            raise busy(status, type, reason, writing=True)
        else:
            refused[f"Elasticsearch refused the event: {type}: {reason}"] += 1
    return left

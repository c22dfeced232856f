"""Sending items: in requests of bounded size, what is refused for now again and again for a while, each by itself."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.elasticsearch.cluster import AWAY_AGAIN, BUSY_AGAIN, Cluster, JsonObject

log = logging.getLogger(__name__)

#: Characters of a request. Larger ones go no faster when several are under way, and the client warns of them.
REQUEST = 2**20 - 2**12
_SENDERS = 4
#: Seconds between attempts, while nodes are too busy.
PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)

_TOO_MANY = 429
#: Refused for now: too many requests, no active shard, a timeout.
_FOR_NOW = frozenset({_TOO_MANY, 503, 504})
_CONFLICT = 409


async def send(cluster: Cluster, index: str, items: Iterable[str], *, in_order: bool) -> Mapping[str, int]:
    """Have the items done, in the index unless they name another; how many were refused for good, by reason.

    Raises EventStoreBusy when some of them cannot be done now. All may be sent again. Unless they are to be done
    `in_order`, several requests are under way at once.
    """
    refused: Counter[str] = Counter()
    parts = _parts(items)

    async def send_parts() -> None:
        for part in parts:
            await _send_part(cluster, index, part, refused)

    senders = [send_parts() for _ in range(1 if in_order else _SENDERS)]
    for outcome in await asyncio.gather(*senders, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
    return refused


def _parts(items: Iterable[str]) -> Iterator[list[str]]:
    part: list[str] = []
    size = 0
    for item in items:
        if size and size + len(item) > REQUEST:
            yield part
            part, size = [], 0
        part.append(item)
        size += len(item)
    if part:
        yield part


async def _send_part(cluster: Cluster, index: str, items: list[str], refused: Counter[str]) -> None:
    for pause in (*PAUSES, None):
        try:
            answers = await cluster.bulk(index, "".join(items).encode())
        except EventStoreBusy as busy:
            if pause is None or not busy.overloaded:
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
        reason = f"{error.get('type')}: {error.get('reason')}"
        if "block" in str(error.get("type")) or error.get("type") == "index_closed_exception":
            raise _unavailable(f"Elasticsearch does not write: {reason}", retry_after=30)
        if status in _FOR_NOW or status == _CONFLICT:
            if last:
                raise _overloaded(reason) if status == _TOO_MANY else _unavailable(reason)
            left.append(item)
        elif 400 <= status < 500 and status not in (401, 403, 404):
            refused[f"Elasticsearch refused the event: {reason}"] += 1
        else:
            raise _unavailable(f"Elasticsearch does not write: {reason}")
    return left


def _overloaded(reason: str) -> EventStoreBusy:
    return EventStoreBusy(f"Elasticsearch is overloaded: {reason}", retry_after=BUSY_AGAIN, may_be_kept=True)


def _unavailable(reason: str, *, retry_after: int = AWAY_AGAIN) -> EventStoreBusy:
    return EventStoreBusy(reason, retry_after=retry_after, overloaded=False, may_be_kept=True)

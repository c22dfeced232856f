"""Leases: which server compacts an owner. Each is a document beside the owner's blocks.

A lease names the time of its end, by the clock of its holder. This clock may have been a day ahead when the holder
died. So a lease also ends when a server has seen it unchanged for so long.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

from elasticsearch import ConflictError, NotFoundError

from apiserver.events.model import Owner
from apiserver.stores.events.elasticsearch import names
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.errors import errors

#: Seconds for an answer when a lease is given back. A server that stops waits for it. Else, the lease ends by itself.
_GIVING_BACK = 3
#: So many places are remembered.
_MOST_SEEN = 10_000


class Seen:
    """For how long this server has seen documents of others unchanged. No clock of others is asked for that."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[Hashable, tuple[int, float]] = {}
        """The place of each document, and when (monotonic) it was seen there first."""

    def seconds(self, key: Hashable, place: int) -> float:
        """How many seconds ago the document with this key was first seen at this place."""
        now = self._clock()
        known, since = self._seen.get(key, (place, now))
        if known != place:
            since = now
        if len(self._seen) >= _MOST_SEEN:
            self._seen.clear()
        self._seen[key] = place, since
        return now - since


class Leases:
    """The leases of owners, as one server sees them."""

    def __init__(self, cluster: Cluster, clock: Callable[[], float] = time.monotonic) -> None:
        self._cluster = cluster
        self._seen = Seen(clock)
        """The leases that other servers hold."""

    async def take(self, index: str, owner: Owner, holder: str, seconds: float) -> bool:
        """Whether the holder may compact the owner, whose blocks are in this index, for so long. 0 gives it back.

        The document is created first: a shard that was made just now waits with that, and cannot be asked yet.
        """
        id, now = f"lease {names.owner_key(owner)}", int(time.time() * 1000)
        place: dict[str, Any] = {"index": index, "id": id, "routing": names.owner_key(owner)}
        document = {"holder": holder, "until": now + int(seconds * 1000)}
        client = self._cluster.client if seconds else self._cluster.client.options(request_timeout=_GIVING_BACK)
        await self._cluster.ensure([index])
        with errors(writing=True):
            if seconds and await _done(client.create(**place, document=document)):
                return True
            try:
                lease = await client.get(**place, stored_fields=["holder", "until"])
            except NotFoundError:
                return not seconds
            is_of_another = lease["fields"]["holder"] != [holder] and lease["fields"]["until"][0] > now
            if is_of_another and not 0 < seconds <= self._seen.seconds(owner, lease["_seq_no"]):
                return False
            place |= {"if_seq_no": lease["_seq_no"], "if_primary_term": lease["_primary_term"]}
            return await _done(client.index(**place, document=document) if seconds else client.delete(**place))


async def _done(write: Awaitable[Any]) -> bool:
    """Whether nobody else wrote the document before."""
    try:
        await write
    except ConflictError:
        return False
    return True

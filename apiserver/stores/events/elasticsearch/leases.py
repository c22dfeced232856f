"""Leases: which server compacts an owner. Each is a document beside the owner's blocks.

A lease names the time of its end, by the clock of its holder. This clock may have been a day ahead when the holder
died. So a lease also ends when a server has seen it unchanged for so long.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import Any

from elasticsearch import ConflictError, NotFoundError

from apiserver.events.model import Owner
from apiserver.stores.events.elasticsearch import names
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.errors import errors

#: So many leases of others are remembered.
_MOST_SEEN = 10_000


class Leases:
    """The leases of owners, as one server sees them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._seen: dict[Owner, tuple[int, float]] = {}
        """Leases of others: the place of each, and when (monotonic) it was seen first."""

    async def take(self, index: str, owner: Owner, holder: str, seconds: float) -> bool:
        """Whether the holder may compact the owner, whose blocks are in this index, for so long. 0 gives it back.

        The document is created first: a shard that was made just now waits with that, and cannot be asked yet.
        """
        id, now = f"lease {names.owner_key(owner)}", int(time.time() * 1000)
        place: dict[str, Any] = {"index": index, "id": id, "routing": names.owner_key(owner)}
        document = {"holder": holder, "until": now + int(seconds * 1000)}
        client = self._cluster.client
        await self._cluster.ensure([index])
        with errors(writing=True):
            if seconds and await _done(client.create(**place, document=document)):
                return True
            try:
                found = await client.get(**place, stored_fields=["holder", "until"])
            except NotFoundError:
                return not seconds
            others = found["fields"]["holder"] != [holder] and found["fields"]["until"][0] > now
            if others and not self._is_seen_for(owner, found["_seq_no"], seconds):
                return False
            place |= {"if_seq_no": found["_seq_no"], "if_primary_term": found["_primary_term"]}
            return await _done(client.index(**place, document=document) if seconds else client.delete(**place))

    def _is_seen_for(self, owner: Owner, place: int, seconds: float) -> bool:
        """Whether the same lease, which has this place, was seen so many seconds ago."""
        now = time.monotonic()
        known, since = self._seen.get(owner, (place, now))
        if known != place:
            since = now
        if len(self._seen) >= _MOST_SEEN:
            self._seen.clear()
        self._seen[owner] = place, since
        return bool(seconds) and now - since >= seconds


async def _done(write: Awaitable[Any]) -> bool:
    """Whether nobody else wrote the document before."""
    try:
        await write
    except ConflictError:
        return False
    return True

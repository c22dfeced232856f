"""Marks of owners whose events may not be in their documents yet, each by the server that took the events.

A mark goes with the first events of an owner, and goes away when its document is written. Those of a server that died
are found by their age: a living server renews a mark with the events that it takes.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Collection, Iterable
from dataclasses import dataclass
from itertools import count

import orjson
from elasticsearch import ApiError

from apiserver.events.model import JsonObject, Owner
from apiserver.stores.events.elasticsearch.cluster import Cluster, errors

#: Seconds after which a mark is set anew with the next events, and after which it must be a dead server's.
RENEWED = 10.0
ABANDONED = 60.0

_PAGE = 1000


@dataclass(slots=True)
class _Mark:
    id: str
    at: float = 0.0
    """The age that it is known to have."""


class Marks:
    """The marks of all servers, and which of them are this one's."""

    def __init__(self, cluster: Cluster, *, abandoned: float = ABANDONED) -> None:
        self._cluster = cluster
        self._abandoned = abandoned
        self._server = uuid.uuid4().hex
        self._numbers = count()
        self._set: dict[Owner, _Mark] = {}
        self._found: dict[Owner, list[tuple[str, int, int]]] = {}
        """Old marks that were told: id, number and term of their last change."""

    @property
    def index(self) -> str:
        """Where the marks are."""
        return f"{self._cluster.prefix}-marks"

    def items(self, owners: Iterable[Owner], now: float) -> dict[Owner, str]:
        """The items of a bulk request that mark those of the owners whose marks are not known to be young."""
        items: dict[Owner, str] = {}
        for owner in (owner for owner in owners if owner.has_document):
            mark = self._set.get(owner)
            if mark is None:  # each has an id of its own: the one before may be on its way out
                mark = self._set[owner] = _Mark(f"{self._server}-{next(self._numbers)}")
            if now - mark.at >= RENEWED:
                items[owner] = self._item(mark.id, owner, now)
        return items

    def _item(self, id: str, owner: Owner, now: float) -> str:
        action = {"index": {"_index": self.index, "_id": id}}
        mark = {"company": owner.company, "task": owner.id, "is_model": owner.is_model, "at": int(now * 1000)}
        return f"{orjson.dumps(action).decode()}\n{orjson.dumps(mark).decode()}\n"

    def are_set(self, owners: Iterable[Owner], at: float) -> None:
        """Say that the items of these owners, made at this time, were done: others count the age from there."""
        for owner in owners:
            if mark := self._set.get(owner):
                mark.at = max(mark.at, at)
        self._cluster.wrote([self.index])

    async def owners(self) -> AsyncIterator[Owner]:
        """The owners with a mark that nobody renewed for long, sorted."""
        told: dict[Owner, list[tuple[str, int, int]]] = {}
        before = int((time.time() - self._abandoned) * 1000)
        query = {"range": {"at": {"lte": before}}}
        async with self._cluster.point_in_time(self.index) as point:
            after: JsonObject = {}
            while True:
                body = {"size": _PAGE, "query": query, "sort": ["_shard_doc"], "seq_no_primary_term": True, **after}
                hits = (await self._cluster.search_at(point, body))["hits"]["hits"]
                for hit in hits:
                    source = hit["_source"]
                    owner = Owner(source["company"], source["task"], source["is_model"])
                    told.setdefault(owner, []).append((hit["_id"], hit["_seq_no"], hit["_primary_term"]))
                if len(hits) < _PAGE:
                    break
                after = {"search_after": hits[-1]["sort"]}
        self._found = told  # only now: what nobody was told of is not to be taken away
        for owner in sorted(told):
            yield owner

    async def take_away(self, owners: Collection[Owner]) -> None:
        """Take away this server's marks of the owners, and those that `owners` told and nobody renewed since."""
        client = self._cluster.client
        for owner in owners:
            own = self._set.pop(owner, None)
            old = self._found.pop(owner, [])
            for id, number, term in [(own.id, None, None), *old] if own else old:
                with errors():
                    try:
                        await client.delete(index=self.index, id=id, if_seq_no=number, if_primary_term=term)
                    except ApiError as error:
                        if error.status_code not in (404, 409):
                            raise
        self._cluster.wrote([self.index])

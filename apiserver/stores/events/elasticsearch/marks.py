"""Marks of owners whose documents may not show their newest events yet. A mark belongs to the server that took events.

A server sets a mark with the first events of an owner, and deletes it when the owner's document is written. It renews
the mark every 10 seconds while more events come. So an old mark is that of a server that died. For example:

    server A takes events of task t   and sets mark A-0 of t
    server A dies                     before it writes the document
    60 seconds later                  server B finds mark A-0, writes the document of t, and deletes the mark
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
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.errors import errors
from apiserver.stores.events.elasticsearch.queries import any_of, between

#: Seconds after which a mark is set again with the next events, and seconds after which its server counts as dead.
RENEWED = 10.0
ABANDONED = 60.0
#: If the time of a mark is so many seconds ahead, a clock was wrong. Such a mark counts as expired.
AHEAD = 3600.0

_PAGE = 1000


@dataclass(slots=True)
class _Mark:
    id: str
    at: float = 0.0
    """The time (epoch seconds) at which it was last set for certain."""


class Marks:
    """This server's marks, and the expired marks of all servers."""

    def __init__(self, cluster: Cluster, *, abandoned: float = ABANDONED) -> None:
        self._cluster = cluster
        self._abandoned = abandoned
        self._server = uuid.uuid4().hex
        self._numbers = count()
        self._set: dict[Owner, _Mark] = {}
        self._found: dict[Owner, list[tuple[str, int, int]]] = {}
        """The expired marks that `owners` returned: id, number and term of their last change."""

    @property
    def index(self) -> str:
        """The index of the marks."""
        return f"{self._cluster.prefix}-marks"

    def items(self, owners: Iterable[Owner], now: float) -> dict[Owner, str]:
        """The items of a bulk request that set marks of owners whose marks are missing or older than RENEWED."""
        items: dict[Owner, str] = {}
        for owner in (owner for owner in owners if owner.has_document):
            mark = self._set.get(owner)
            if mark is None:  # with a new id, as the mark before may just be being deleted
                mark = self._set[owner] = _Mark(f"{self._server}-{next(self._numbers)}")
            if abs(now - mark.at) >= RENEWED:  # the clock may have been set back
                action = {"index": {"_index": self.index, "_id": mark.id}}
                said = {"company": owner.company, "task": owner.id, "is_model": owner.is_model, "at": int(now * 1000)}
                items[owner] = f"{orjson.dumps(action).decode()}\n{orjson.dumps(said).decode()}\n"
        return items

    def are_set(self, owners: Iterable[Owner], at: float) -> None:
        """Note that the items of these owners were done. Other servers count the age of their marks from `at` on."""
        for owner in owners:
            if mark := self._set.get(owner):
                was_set_back = at < mark.at - RENEWED
                mark.at = at if was_set_back else max(mark.at, at)
        self._cluster.wrote([self.index])

    async def owners(self, *, of_all: bool = False) -> AsyncIterator[Owner]:
        """The owners whose marks have expired; with `of_all`, all that have marks. They are sorted."""
        told: dict[Owner, dict[str, tuple[str, int, int]]] = {}
        now = time.time()
        expired = between("at", None, int((now - self._abandoned) * 1000))
        counting = any_of([*expired, *between("at", int((now + AHEAD) * 1000), None)])
        query: JsonObject = {"match_all": {}} if of_all else counting
        body: JsonObject = {"size": _PAGE, "query": query, "sort": [{"_seq_no": "asc"}], "seq_no_primary_term": True}
        while True:
            hits = (await self._cluster.search(self.index, body))["hits"]["hits"]
            for hit in hits:
                source, mark = hit["_source"], (hit["_id"], hit["_seq_no"], hit["_primary_term"])
                told.setdefault(Owner(source["company"], source["task"], source["is_model"]), {})[mark[0]] = mark
            if len(hits) < _PAGE:
                break
            body["search_after"] = [hits[-1]["sort"][0] - 1]  # another shard may have this number, too
        # Only after all were read, as marks that are not returned must not be deleted.
        self._found = {owner: [*marks.values()] for owner, marks in told.items()}
        for owner in sorted(told):
            yield owner

    async def take_away(self, owners: Collection[Owner]) -> None:
        """Delete this server's marks of the owners, and expired marks that `owners` returned, unless renewed since."""
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

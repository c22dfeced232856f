"""Tells what changed by the numbers that shards give to what they do. No clock is asked, so all servers agree.

Each shard numbers its operations (`_seq_no`). Up to its *global checkpoint*, all of them are done on all of its copies,
and will not be undone. So a cursor has the checkpoints of all shards. What changed since is what has a greater number.
For example, two servers write to a shard at the same time:

    operations 0–6 are done, 7 is under way, 8 is done    the checkpoint is 6
    a reader without a cursor                             gets 6
    operation 7 is done                                   the checkpoint is 8
    the reader asks since 6                               is told of 7 and 8, and gets 8

A block is new if it is a fragment, or a chunk of new fragments: a chunk says which was the newest of them. A bundle
tells of each of its series. A note that lines of a log are being deleted, or were, tells that everything changed.

Deleted documents cannot be searched. So each deletion of documents notes its owners in an index of its own: when it
begins, again and again while it goes on, and when it is done. While it goes on, each question is answered with
"everything", as if the owner had changed since. A deletion that failed, or whose server has stopped, notes nothing any
more: once a server has seen the same note for a minute, it takes the deletion as ended, and tells "everything" for the
last time. A deletion of blocks is a document among them, and is told once.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from apiserver.events.changes import Changes, ChangesQuery, Cursor, OwnerChanges
from apiserver.events.model import EventType, JsonObject, Owner, SeriesName
from apiserver.events.queries import GREATEST, LEAST, Range
from apiserver.stores.events.base import EventStoreError
from apiserver.stores.events.blocks.log_blocks import NOTE
from apiserver.stores.events.elasticsearch import bulk, names
from apiserver.stores.events.elasticsearch.block_documents import told_of
from apiserver.stores.events.elasticsearch.blocks import BLOCK_TYPES
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.leases import Seen
from apiserver.stores.events.elasticsearch.queries import BARE, all_of, any_of, between, blocks_since, terms

#: Seconds between two looks of a reader who waits for changes.
POLL = 1.0

#: What a cursor begins with.
_ENGINE = "elasticsearch"
_PAGE = 5000
#: An owner, the metric and the variant of one of its series, and iterations of that which changed.
_Changed = tuple[str, str, str, Range]
#: A shard that has done nothing has this checkpoint, or a lower one.
_NOTHING = -1


@dataclass(frozen=True, slots=True)
class Shards:
    """What the shards of an index have done: for each, the global checkpoint, and the number of its last operation."""

    uuid: str
    checkpoints: Sequence[int]
    last: Sequence[int]

    def behind(self, since: Sequence[int]) -> list[tuple[int, int]]:
        """The shards that went on since these checkpoints, each with its checkpoint then."""
        known = [*since, *[_NOTHING] * len(self.last)]
        return [(shard, known[shard]) for shard, last in enumerate(self.last) if last > known[shard]]


class _Index(NamedTuple):
    """An index of events."""

    type: EventType
    company: str

    @property
    def is_of_blocks(self) -> bool:
        """Whether it has blocks; else it has a document for each event."""
        return self.type in BLOCK_TYPES

    def name(self, prefix: str) -> str:
        """Its name."""
        named = names.blocks if self.is_of_blocks else names.index
        return named(prefix, self.type, self.company)

    def written_since(self, place: int) -> list[JsonObject]:
        """Conditions for documents with events that came since."""
        return [blocks_since(place)] if self.is_of_blocks else between("_seq_no", place + 1, None)


def _indices(prefix: str, companies: Iterable[str]) -> dict[str, _Index]:
    """All indices of the companies' events by their names."""
    indices = [_Index(type, company) for company in companies for type in EventType]
    return {index.name(prefix): index for index in indices}


class Deletions:
    """The index in which servers note whose events they delete."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._seen = Seen()
        """The notes of deletions that went on, by owners."""

    @property
    def index(self) -> str:
        """Its name."""
        return f"{self._cluster.prefix}-deletions"

    @asynccontextmanager
    async def noted(self, owners: Sequence[Owner]) -> AsyncIterator[None]:
        """The caller deletes events of the owners inside."""
        begun, ended = int(time.time() * 1000), asyncio.Event()
        await self._note(owners, begun, done=False)
        noting = asyncio.create_task(self._note_again(owners, begun, ended))
        try:
            yield
        finally:
            ended.set()
            await noting  # so that no note of it comes behind the last one
        await self._note(owners, begun, done=True)

    async def _note_again(self, owners: Sequence[Owner], begun: int, ended: asyncio.Event) -> None:
        while not ended.is_set():
            try:
                await asyncio.wait_for(ended.wait(), self._cluster.bounds.noted_every)
            except TimeoutError:
                with suppress(EventStoreError):
                    await self._note(owners, begun, done=False)

    def goes_on(self, owner: str, place: int) -> bool:
        """Whether a deletion that noted at this place that it goes on may do so still."""
        return self._seen.seconds(owner, place) < self._cluster.bounds.ended_after

    async def _note(self, owners: Iterable[Owner], begun: int, *, done: bool) -> None:
        await self._cluster.ensure([self.index])
        items = (self._item(owner, begun, done) for owner in owners)
        await bulk.send(self._cluster, self.index, items, in_order=False)
        self._cluster.wrote([self.index])

    def _item(self, owner: Owner, begun: int, done: bool) -> str:
        key = _key(owner)
        action = {"index": {"_id": names.series_key(names.series_hash(key))}}
        note = {"owner": key, "begun": begun, "done": done}
        return f"{orjson.dumps(action).decode()}\n{orjson.dumps(note).decode()}\n"


def _key(owner: Owner) -> str:
    return orjson.dumps([owner.company, names.owner_key(owner)]).decode()


async def changes_since(cluster: Cluster, deletions: Deletions, query: ChangesQuery) -> Changes:
    """What changed, as `ChangeFeed.changes` describes it."""
    companies = sorted({owner.company for owner in query.owners})
    indices = _indices(cluster.prefix, companies)
    watched = [*indices, deletions.index]
    shards = await shards_of(cluster, watched)
    reached = {name: [index_shards.uuid, *index_shards.checkpoints] for name, index_shards in shards.items()}
    changes = Changes([_ENGINE, companies, reached])
    if query.since is None:
        cluster.wrote(reached)  # as other servers may have: reads after this see all up to the cursor
        seen: Mapping[str, Sequence[Any]] | None = {**reached, deletions.index: reached[deletions.index][:1]}
    else:
        seen = _known(query.since, companies)
    if seen is None or any(name in seen and seen[name][:1] != reached.get(name, [])[:1] for name in watched):
        return Changes.all_of(changes.cursor, query.owners)
    behind = {name: index_shards.behind(seen.get(name, [""])[1:]) for name, index_shards in shards.items()}
    changed = [name for name in watched if behind.get(name)]
    cluster.wrote(changed)
    look = _Look(cluster, query, changes, {name: cluster.written(name) for name in changed})
    for name in changed:
        for shard, since in behind[name]:
            if name in indices:
                await look.events(name, indices[name], shard, since)
            elif await look.deletions(deletions, shard, since):
                reached[name][1 + shard] = since  # so that it is told again until it is done
    return changes if query.since is not None else Changes(changes.cursor)


async def place_at(cluster: Cluster, cursor: Cursor, index: str, owner: Owner) -> int:
    """The checkpoint of the owner's shard that a cursor names; −1 if it knows nothing of this index, as it is now."""
    seen = (_known(cursor, [owner.company]) or {}).get(index, [""])
    stats = await cluster.shard_stats([index])
    if index not in stats or stats[index]["uuid"] != seen[0]:
        return _NOTHING
    shard: int = seen[1 + await cluster.shard_of(index, names.owner_key(owner))]
    return shard


async def shards_of(cluster: Cluster, indices: Sequence[str]) -> dict[str, Shards]:
    """What the shards of these indices have done; an index that is not there is left out."""
    shards = {}
    for name, index in (await cluster.shard_stats(indices)).items():
        by_number = {int(number): _primary(copies) for number, copies in index["shards"].items()}
        in_order = [by_number.get(number, {}) for number in range(max(by_number) + 1)]
        checkpoints = [max(stats.get("global_checkpoint", _NOTHING), _NOTHING) for stats in in_order]
        shards[name] = Shards(index["uuid"], checkpoints, [stats.get("max_seq_no", GREATEST) for stats in in_order])
    return shards


def _primary(copies: Sequence[JsonObject]) -> JsonObject:
    """The numbers of a shard, as its primary copy knows them; nothing if it is away."""
    return next((copy.get("seq_no", {}) for copy in copies if copy["routing"]["primary"]), {})


def _known(cursor: Cursor, companies: Collection[str]) -> Mapping[str, Sequence[Any]] | None:
    """The shards that a cursor names, by index; None if it is not of this engine, or knows not all of the companies."""
    match cursor:
        case [str(engine), [*known], dict(shards)] if engine == _ENGINE and set(companies) <= set(known):
            return shards
    return None


@dataclass(slots=True)
class _Look:
    """Puts what searches find into `found`."""

    cluster: Cluster
    query: ChangesQuery
    found: Changes
    writes: Mapping[str, int]
    """How many writes of each index its searches have to see: one refresh of the index shows them to all searches."""
    series: int = 0

    async def events(self, index: str, of: _Index, shard: int, since: int) -> None:
        """What is new in a shard."""
        owners = {names.owner_key(owner): owner for owner in self.query.owners if owner.company == of.company}
        changed = await self._owners(index, of, shard, since, list(owners))
        if not changed:
            return
        if of.type is EventType.LOG:
            for key, lines in changed.items():
                self._of(owners[key]).log_lines += lines
            return
        query = all_of(terms("owner", list(changed)), *of.written_since(since))
        series = self._blocks if of.is_of_blocks else self._series
        async for owner, metric, variant, iterations in series(index, shard, query):
            if owner not in owners:
                continue
            told, name = self._of(owners[owner]), SeriesName(of.type, metric, variant)
            if name not in told.series:
                if self.series >= self.query.most:  # series come in the order of their owners
                    for key in changed:
                        if key >= owner:
                            self._everything(owners[key])
                    return
                self.series += 1
            told.widen(name, iterations)

    async def _owners(self, index: str, of: _Index, shard: int, since: int, owners: list[str]) -> dict[str, int]:
        """How many events came since, of those owners that have some. Deletions of blocks are told here."""
        query = all_of(terms("owner", owners), *of.written_since(since))
        by_owner: JsonObject = {"terms": {"field": "owner", "size": len(owners)}}
        aggs = {"owners": by_owner}
        if of.is_of_blocks:
            query = any_of([query, all_of(terms("deleted", owners), *between("_seq_no", since + 1, None))])
            by_owner["aggs"] = {"events": {"sum": {"field": "count"}}}
            if of.type is EventType.LOG:
                by_owner["aggs"]["notes"] = {"filter": {"term": {"metric": NOTE}}}
            aggs["deleted"] = {"terms": {"field": "deleted", "size": len(owners)}}
        body: JsonObject = {"size": 0, "track_total_hits": False, "query": query, "aggs": aggs}
        found = (await self._search(index, shard, body)).get("aggregations", {})
        for bucket in found["deleted"]["buckets"] if "deleted" in found else ():
            self._everything(names.owner_of(of.company, bucket["key"]))
        buckets = found["owners"]["buckets"] if found else []
        for bucket in buckets:
            if bucket.get("notes", {}).get("doc_count"):
                self._everything(names.owner_of(of.company, bucket["key"]))
        counts = {one["key"]: int(one["events"]["value"]) if of.is_of_blocks else one["doc_count"] for one in buckets}
        return {owner: count for owner, count in counts.items() if count}

    async def _blocks(self, index: str, shard: int, query: JsonObject) -> AsyncGenerator[_Changed, None]:
        """What is in the blocks that match, in the order of their owners; a series may come several times."""
        body: JsonObject = {
            **BARE,
            "size": _PAGE,
            "query": query,
            "sort": [{"owner": "asc"}, {"_seq_no": "asc"}],
            "docvalue_fields": ["owner", "metric", "variant", "members", "first", "last"],
        }
        while True:
            hits = (await self._search(index, shard, body))["hits"]["hits"]
            for hit in hits:
                owner, series = told_of(hit)
                for metric, variant, iterations in series:
                    yield owner, metric, variant, iterations
            if len(hits) < _PAGE:
                return
            body["search_after"] = hits[-1]["sort"]

    async def _series(self, index: str, shard: int, query: JsonObject) -> AsyncGenerator[_Changed, None]:
        """What is in the documents that match, in the order of their owners."""
        sources = [{name: {"terms": {"field": name}}} for name in ("owner", "metric", "variant")]
        group: JsonObject = {"size": min(_PAGE, self.query.most + 1), "sources": sources}
        ends = {"least": {"min": {"field": "iter"}}, "greatest": {"max": {"field": "iter"}}}
        aggs = {"series": {"composite": group, "aggs": ends}}
        while True:
            body = {"size": 0, "track_total_hits": False, "query": query, "aggs": aggs}
            series = (await self._search(index, shard, body)).get("aggregations", {}).get("series", {})
            buckets = series.get("buckets", [])
            for bucket in buckets:
                owner, metric, variant = bucket["key"].values()
                yield owner, metric, variant, _range(bucket)
            if len(buckets) < group["size"]:
                return
            group["after"] = series["after_key"]

    async def deletions(self, notes: Deletions, shard: int, since: int) -> bool:
        """Deletions that were noted since, or go on; returns whether some go on."""
        owners = {_key(owner): owner for owner in self.query.owners}
        newest = int((time.time() - self.cluster.bounds.longest_deletion) * 1000)
        going_on = all_of({"term": {"done": False}}, *between("begun", newest, None))
        by_owner: JsonObject = {"terms": {"field": "owner", "size": len(owners)}}
        places = {**by_owner, "aggs": {"place": {"max": {"field": "_seq_no"}}}}
        body: JsonObject = {
            "size": 0,
            "track_total_hits": False,
            "query": all_of(terms("owner", list(owners)), *between("_seq_no", since + 1, None)),
            "aggs": {"owners": by_owner, "going_on": {"filter": going_on, "aggs": {"owners": places}}},
        }
        answer = (await self._search(notes.index, shard, body)).get("aggregations")
        if not answer:
            return False
        for bucket in answer["owners"]["buckets"]:
            self._everything(owners[bucket["key"]])
        noted = answer["going_on"]["owners"]["buckets"]
        still = [one for one in noted if notes.goes_on(one["key"], int(one["place"]["value"]))]
        return bool(still)

    async def _search(self, index: str, shard: int, body: JsonObject) -> JsonObject:
        return await self.cluster.search_shard(index, shard, body, self.writes[index])

    def _of(self, owner: Owner) -> OwnerChanges:
        """What is told of an owner; if that is everything already, nothing is added to it."""
        known = self.found.owners.setdefault(owner, OwnerChanges())
        return OwnerChanges() if known.everything else known

    def _everything(self, owner: Owner) -> None:
        self.found.owners[owner] = OwnerChanges(everything=True)


def _range(bucket: JsonObject) -> Range:
    """The iterations of a series, which aggregations round to doubles: beyond 2⁵³ a little more than they are."""
    least, greatest = bucket["least"]["value"], bucket["greatest"]["value"]
    if abs(least) >= 2**53:
        least = math.nextafter(least, -math.inf)
    if abs(greatest) >= 2**53:
        greatest = math.nextafter(greatest, math.inf)
    return Range(max(int(least), LEAST), min(int(greatest), GREATEST))

"""Reads points that are a document each as blocks of points."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Sequence
from functools import partial
from itertools import groupby

import numpy as np

from apiserver.events.model import EventType, JsonObject, Owner
from apiserver.off_loop import off_loop
from apiserver.stores.events.columnar.blocks import OLD, Block, Columns, Gone
from apiserver.stores.events.columnar.encoding import CURVE, DETAILS, curve_column, details_column
from apiserver.stores.events.columns.names import Name
from apiserver.stores.events.columns.points import Curve, Points, Workers, take
from apiserver.stores.events.elasticsearch import names
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.old_parts import Part, cut, far, measures, near, part
from apiserver.stores.events.elasticsearch.queries import BARE, all_of, between, of_owners, of_series
from apiserver.stores.events.parts import in_parts

#: Points of one request.
_AT_A_TIME = 40_000
_SERIES = ["owner", "metric", "variant"]
_OF_CURVES = ("iter", "value", "special")
_WHOLE = (*_OF_CURVES, "timestamp", "worker", "received")
#: The field `special` of a value that is not finite, as Elasticsearch does not take such values.
NAN, INFINITE, MINUS_INFINITE = 0, 1, -1
_SPECIAL = {NAN: math.nan, INFINITE: math.inf, MINUS_INFINITE: -math.inf}


class OldScalars:
    """The points of one prefix."""

    type = EventType.SCALAR

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def index(self, company: str) -> str:
        """The index of a company."""
        return names.index(self._cluster.prefix, self.type, company)

    async def blocks(self, owners: Sequence[Owner]) -> list[Block]:
        """Blocks with all points of owners of one company. Those of a series do not overlap."""
        by_key = {names.owner_key(owner): owner for owner in owners}
        found: dict[Owner, list[tuple[Name, Part]]] = {}
        async for bucket in self._series(owners, near("iter"), _SERIES, measures("iter")):
            owner, *name = bucket["key"].values()
            found.setdefault(by_key[owner], []).append(((name[0], name[1]), part(bucket)))
        blocks = [block for owner, some in found.items() for block in await self._cut(owner, some)]
        for those in far("iter"):
            listed = [[*bucket["key"].values()] async for bucket in self._series(owners, those, [*_SERIES, "iter"])]
            for (owner, *name), rows in groupby(listed, key=lambda row: row[:3]):
                for some in in_parts([row[3] for row in rows], lambda iter: 1, self._cluster.bounds.part_events):
                    blocks.append(_block(by_key[owner], (name[0], name[1]), Part(some[0], some[-1], len(some), 0)))
        return blocks

    def _series(
        self, owners: Sequence[Owner], those: JsonObject, by: Sequence[str], aggs: JsonObject | None = None
    ) -> AsyncIterator[JsonObject]:
        routing = names.owner_key(owners[0]) if len(owners) == 1 else None
        index, query = self.index(owners[0].company), all_of(of_owners(owners), those)
        return self._cluster.composite(index, query, by, routing=routing, aggs=aggs)

    async def _cut(self, owner: Owner, some: Sequence[tuple[Name, Part]]) -> list[Block]:
        key = names.owner_key(owner)
        wanted = [(of_series([names.series_of(key, *name)]), of_name) for name, of_name in some]
        cuts = await cut(self._cluster, self.index(owner.company), key, "iter", wanted)
        return [_block(owner, name, one) for (name, _), parts in zip(some, cuts, strict=True) for one in parts]

    async def columns(self, wanted: Sequence[tuple[Block, Sequence[str]]]) -> list[Columns]:
        """The named columns of each block. Gone: some of the points are not there."""
        found: list[Columns] = []
        for owner, of_owner in groupby(wanted, key=lambda one: one[0].owner):
            for some in in_parts(of_owner, lambda one: one[0].count, _AT_A_TIME):
                bodies = [_search(block, columns) for block, columns in some]
                answers = await self._cluster.searches(
                    self.index(owner.company), bodies, routing=names.owner_key(owner)
                )
                for (block, columns), answer in zip(some, answers, strict=True):
                    hits = answer["hits"]["hits"]
                    if len(hits) != block.count:
                        raise Gone
                    found.append(await off_loop(block.count, partial(_columns, block, columns, hits)))
        return found


def _block(owner: Owner, name: Name, part: Part) -> Block:
    id = f"old {owner.company} {names.series_of(names.owner_key(owner), *name)} {part.first}"
    return Block(owner, name, id, OLD, part.first, part.last, part.events)


def _search(block: Block, columns: Sequence[str]) -> JsonObject:
    key = names.series_of(names.owner_key(block.owner), *block.series)
    fields = _WHOLE if DETAILS in columns else _OF_CURVES
    query = of_series([key], *between("iter", block.first, block.last))
    return {**BARE, "query": query, "sort": ["_doc"], "size": block.count, "docvalue_fields": list(fields)}


def _columns(block: Block, wanted: Sequence[str], hits: Sequence[JsonObject]) -> Columns:
    """The wanted columns of a block with these points."""
    fields = [hit["fields"] for hit in hits]
    values = [one["value"][0] if "value" in one else _SPECIAL[one["special"][0]] for one in fields]
    curve = Curve(np.array([one["iter"][0] for one in fields], np.int64), np.array(values, np.float64))
    order = np.argsort(curve.iters)
    made = {CURVE: curve_column(block.id, take(curve, order))}
    if DETAILS in wanted:
        workers = Workers()
        points = Points(
            *curve,
            np.array([one["timestamp"][0] for one in fields], np.int64),
            workers.numbers([one["worker"][0] for one in fields]),
            np.array([one["received"][0] for one in fields], np.int64),
        )
        made[DETAILS] = details_column(block.id, take(points, order), workers.names)
    return {name: made[name] for name in wanted}

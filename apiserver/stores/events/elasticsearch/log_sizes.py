"""How much each worker logged. Lines have their sizes, but lines of older versions have to be read."""

from __future__ import annotations

from apiserver.events.log_text import sizes_of
from apiserver.events.model import EventType, LogSize, Owner
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.elasticsearch import names, paging
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.queries import of, ordered, without
from apiserver.stores.events.elasticsearch.stats import extent

WINDOW = 1000
_WITHOUT_SIZE = without({"exists": {"field": "size"}})


async def sizes(cluster: Cluster, owner: Owner) -> dict[str, LogSize]:
    """How much each worker logged."""
    series = SeriesQuery(owner, EventType.LOG)
    index, routing = names.index_of(cluster.prefix, series), names.owner_key(owner)
    ends = extent("timestamp")
    low = next(iter(ends))
    aggs = {low: ends[low], "size": {"stats": {"field": "size"}}}
    found: dict[str, LogSize] = {}
    unknown = 0
    async for bucket in cluster.composite(index, of(series), ["worker"], routing=routing, aggs=aggs):
        size = bucket["size"]
        found[bucket["key"]["worker"]] = LogSize(int(bucket[low]["value"]), int(size["sum"]))
        unknown += bucket["doc_count"] - size["count"]
    if unknown:
        await _add_unknown(cluster, series, found)
    return found


async def _add_unknown(cluster: Cluster, series: SeriesQuery, found: dict[str, LogSize]) -> None:
    """Add the lines that do not have their sizes. They are read one by one."""
    pages = paging.texts(
        cluster,
        names.index_of(cluster.prefix, series),
        names.owner_key(series.owner),
        of(series, _WITHOUT_SIZE),
        ordered(("timestamp", "sequence")),
        fields=["worker"],
        stored=["message"],
        window=WINDOW,
    )
    async for hits in pages:
        lengths = sizes_of([hit["fields"]["message"][0] for hit in hits]).tolist()
        for hit, length in zip(hits, lengths, strict=True):
            worker = hit["fields"]["worker"][0]
            known = found.get(worker, LogSize(hit["sort"][0], 0))
            found[worker] = LogSize(min(known.first, hit["sort"][0]), known.bytes + length)

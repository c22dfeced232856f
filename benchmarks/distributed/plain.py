"""The limit: Elasticsearch by itself, with a document for each point and each line, as a plain logger would send them.

The documents tell of the same events that the benchmark sends to a server, and each replaces itself if it is sent
again. Their fields can be found and sorted, but sources are not kept, so they are as small as such documents can be.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import cycle
from random import Random
from typing import Any

from benchmarks.bodies import START_MS, log_text
from benchmarks.distributed.engines import Direct, Engines

POINTS, LINES = "points", "lines"
#: Series of a metric each, as in `bodies.noise_lines`.
SERIES = 10

_SETTINGS = {"auto_expand_replicas": "0-1", "codec": "best_compression", "refresh_interval": "1s"}
_KEYWORD, _LONG = {"type": "keyword"}, {"type": "long"}
_UNINDEXED: dict[str, Any] = {"index": False}
_COMMON = {
    "owner": _KEYWORD,
    "metric": _KEYWORD,
    "variant": _KEYWORD,
    "series": _KEYWORD,
    "worker": _KEYWORD | _UNINDEXED,
    "received": _LONG | _UNINDEXED,
}
_FIELDS: dict[str, dict[str, Any]] = {
    POINTS: {
        **_COMMON,
        "iter": _LONG,
        "timestamp": _LONG | _UNINDEXED,
        "value": {"type": "double", "index": False},
    },
    LINES: {
        **_COMMON,
        "timestamp": _LONG,
        "sequence": _LONG,
        "level": _KEYWORD | _UNINDEXED,
        "message": {"type": "text", "index": False, "store": True},
    },
}
_ORDER = {
    POINTS: {"owner": "asc", "series": "asc", "iter": "asc"},
    LINES: {"owner": "asc", "timestamp": "desc", "sequence": "desc"},
}


class Plain:
    """The documents of a benchmark, in indices of their own."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        for kind, fields in _FIELDS.items():
            order = {"field": list(_ORDER[kind]), "order": list(_ORDER[kind].values())}
            settings = {**_SETTINGS, "sort": order}
            mappings = {"dynamic": "strict", "_source": {"enabled": False}, "properties": fields}
            engines.call("PUT", f"/{self.index(kind)}", {"settings": {"index": settings}, "mappings": mappings})

    def index(self, kind: str) -> str:
        """The name of an index."""
        return f"{self._engines.name}-plain-{kind}"

    # --- writing -----------------------------------------------------------------------------------

    def send(self, kind: str, of_clients: Sequence[Sequence[bytes]]) -> None:
        """Send the bulks of each client one after another, and those of all clients at once."""
        with ThreadPoolExecutor(len(of_clients)) as threads:
            list(threads.map(partial(self._send, kind), of_clients))

    def _send(self, kind: str, bodies: Sequence[bytes]) -> None:
        direct = self._engines.direct()
        for body in bodies:
            direct.bulk(self.index(kind), body)

    def fill(self, kind: str, owner: str, batch: int, count: int) -> None:
        """Send `count` bulks of the events that a client sends to a server for one owner."""
        bodies: list[list[bytes]] = [[], []]
        for of_client, first in zip(cycle(bodies), range(0, batch * count, batch), strict=False):
            of_client.append(BULKS[kind](owner, first, batch))
        self.send(kind, bodies)

    # --- reading -----------------------------------------------------------------------------------

    def histogram(self, owner: str, points: int, samples: int) -> Callable[[], object]:
        """The simplest search for a histogram: nested aggregations, with a given interval."""
        aggs: dict[str, Any] = {"value": {"avg": {"field": "value"}}}
        histogram = {"field": "iter", "interval": -(-points // samples), "min_doc_count": 1}
        aggs = {"buckets": {"histogram": histogram, "aggs": aggs}}
        for field in ("variant", "metric"):
            aggs = {field: {"terms": {"field": field, "size": 1000}, "aggs": aggs}}
        return self._search(POINTS, owner, {"size": 0, "query": {"term": {"owner": owner}}, "aggs": aggs})

    def page(self, owner: str, size: int) -> Callable[[], object]:
        """A search for the first points of a series."""
        query = {"bool": {"filter": [{"term": {"owner": owner}}, {"term": {"metric": "metric 0"}}]}}
        fields = ["iter", "timestamp", "value", "metric", "variant", "worker"]
        return self._search(POINTS, owner, {"size": size, "query": query, "sort": ["iter"], "docvalue_fields": fields})

    def lines(self, owner: str, size: int, before: int | None = None) -> Callable[[], object]:
        """A search for the newest lines, or the newest before a time."""
        query: dict[str, Any] = {"bool": {"filter": [{"term": {"owner": owner}}]}}
        if before is not None:
            query["bool"]["filter"].append({"range": {"timestamp": {"lt": before}}})
        sort = [{"timestamp": "desc"}, {"sequence": "desc"}]
        fields = ["level", "worker", "metric", "variant", "received"]
        body = {"size": size, "query": query, "sort": sort, "docvalue_fields": fields, "stored_fields": ["message"]}
        return self._search(LINES, owner, body)

    def _search(self, kind: str, owner: str, body: dict[str, Any]) -> Callable[[], object]:
        direct, whole = self._engines.direct(), {"_source": False, "track_total_hits": False, **body}
        return partial(direct.post, f"/{self.index(kind)}/_search?routing={owner}", json.dumps(whole).encode())

    def delete(self, owners: Sequence[str]) -> None:
        """Delete the points of some owners."""
        direct: Direct = self._engines.direct()
        query = json.dumps({"query": {"terms": {"owner": owners}}}).encode()
        direct.post(f"/{self.index(POINTS)}/_delete_by_query?refresh=true&conflicts=proceed&scroll_size=10000", query)


def points(owner: str, first: int, count: int) -> bytes:
    """A bulk of the points that `bodies.noise_lines` has."""
    random, heads = Random(first), [_head(owner, f"metric {number}", "train", "") for number in range(SERIES)]
    made = []
    for number in range(first, first + count):
        action, document = heads[number % SERIES]
        time = START_MS + number * 5 + random.randrange(5)
        fields = f'"iter":{number // SERIES},"timestamp":{time},"value":{random.gauss()!r}'
        made.append(f"{action}{number:012}{document}{fields}}}\n")
    return "".join(made).encode()


def lines(owner: str, first: int, count: int) -> bytes:
    """A bulk of the lines that `bodies.log_lines` has."""
    action, document = _head(owner, "", "", "host:0")
    return "".join(
        f'{action}{number:012}{document}"timestamp":{START_MS + number},"sequence":{number},"level":"info",'
        f'"message":"{log_text(number)}"}}\n'
        for number in range(first, first + count)
    ).encode()


#: Makes a bulk of `count` events of an owner, whose numbers count from `first`.
BULKS: dict[str, Callable[[str, int, int], bytes]] = {POINTS: points, LINES: lines}


def _head(owner: str, metric: str, variant: str, worker: str) -> tuple[str, str]:
    """What the documents of a series begin with: before the number that ends their ids, and behind it."""
    series = hashlib.blake2b(json.dumps([owner, metric, variant]).encode(), digest_size=10).hexdigest()
    shared = {"owner": owner, "metric": metric, "variant": variant, "series": series, "worker": worker}
    document = json.dumps({**shared, "received": START_MS}, separators=(",", ":")).removesuffix("}")
    return f'{{"index":{{"routing":"{owner}","_id":"{series}', f'"}}}}\n{document},'

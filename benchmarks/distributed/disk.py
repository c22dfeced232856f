"""Measures what events take on disk once they are compacted and merged, and what the plain documents of them take.

What is counted are the bytes of Elasticsearch's segments: all that it keeps of the documents that are there, also for
finding them. For that, each shard is merged into one segment in which no deleted document is left. So a figure does not
depend on what Elasticsearch has merged by itself. Not counted is its transaction log, which is short then. While a
server writes, more is on the disk: fragments, replaced chunks, and segments that will be merged.
"""

from __future__ import annotations

import asyncio

from apiserver.events.model import Owner
from apiserver.settings.settings import Settings
from apiserver.stores.events.elasticsearch.address import elasticsearch_address
from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore
from benchmarks.curves import KINDS, SERIES, batches_of, columns_of, compressed_bytes
from benchmarks.distributed.figures import PLAIN
from benchmarks.distributed.plain import LINES, POINTS
from benchmarks.distributed.run import Run
from benchmarks.figures import PCODEC

#: The kinds of curves of figures of their own. Random values are those of `disk.points`.
_KINDS = ("losses", "decimals", "cosine", "accuracies")


def measure(run: Run, points: int, lines: int) -> None:
    """The figures disk.*, of so many points and lines that were sent before."""
    limits = asyncio.run(_write_curves(run))
    if run.sizes.waits:
        run.server.wait_until_compacted()
        run.engines.wait_until_let_go()
    for kind, limit in limits.items():
        taken = run.engines.merged_bytes(f"{run.engines.name}-blocks-scalars-{kind}", waits=run.sizes.waits)
        run.table.put(f"disk.{kind}", taken / run.sizes.curve_points, {PCODEC: limit})
    company = Settings().company
    for key, pattern, sent, count in (
        ("disk.points", f"*scalars-{company}", POINTS, points),
        ("disk.lines", f"*logs-{company}", LINES, lines),
    ):
        taken, plain = (
            run.engines.merged_bytes(one, waits=run.sizes.waits) / count
            for one in (f"{run.engines.name}-{pattern}", run.plain.index(sent))
        )
        run.table.put(key, taken, {PLAIN: plain})


async def _write_curves(run: Run) -> dict[str, float]:
    """Write and compact curves of each kind, as a company of their own: each company has its own index.

    Returns the bytes of a point that pcodec alone makes of each kind.
    """
    store = ElasticsearchEventStore(elasticsearch_address(run.engines.settings["EVENTS"]))
    await store.open()
    limits = {}
    for kind in _KINDS:
        columns = columns_of(KINDS[kind], run.sizes.curve_points // SERIES)
        owner = Owner(kind, "curves")
        for batch in batches_of(owner, columns):
            await store.add(batch)
        await store.compact(owner)
        limits[kind] = compressed_bytes(columns) / run.sizes.curve_points
    await store.close()
    return limits

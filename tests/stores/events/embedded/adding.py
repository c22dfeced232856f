"""A process that adds to a store as fast as it can and says what was acknowledged; arguments: folder, first, fsync.

Batch n has three points and a line of each of two owners, and one plot. Once it is acknowledged, `n` is printed, and
the cursor of a reader who has seen it. Chunks are so small that many are sealed meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from apiserver.events.changes import ChangesQuery
from apiserver.events.model import EventBatch, Owner
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.contract.event_stores import batch, lines, sample, scalars
from tests.stores.events.embedded.sizes import SMALL

OWNERS = (Owner("company", "one"), Owner("company", "two"))
POINTS = 3


def numbered(n: int) -> EventBatch:
    """Batch n."""
    iters = range(POINTS * n, POINTS * (n + 1))
    return batch(
        *(scalars([float(i) for i in iters], iters=iters, owner=owner) for owner in OWNERS),
        *(lines([str(n)], timestamps=[n], digest=b"%d" % n, owner=owner) for owner in OWNERS),
        sample(n, owner=OWNERS[0]),
    )


async def main(folder: Path, first: int, fsync: bool) -> None:
    store = EmbeddedEventStore(
        folder, fsync=fsync, merge_points=200, merge_seconds=0.005, seal_seconds=0.01, bounds=SMALL
    )
    await store.open()
    n = first
    while True:
        await store.add(numbered(n))
        cursor = (await store.changes(ChangesQuery(OWNERS))).cursor
        sys.stdout.write(f"{n} {json.dumps(cursor)}\n")
        sys.stdout.flush()
        n += 1


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "fsync"))

"""A process that adds to a store as fast as it can and says what was acknowledged; arguments: folder, first, fsync.

Batch n has three points and a line of each of two owners, and one plot; `n` is printed once it is acknowledged.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from apiserver.events.model import EventBatch, Owner
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.contract.event_stores import batch, lines, sample, scalars

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
    store = EmbeddedEventStore(folder, fsync=fsync, merge_points=200, merge_seconds=0.005)
    await store.open()
    n = first
    while True:
        await store.add(numbered(n))
        sys.stdout.write(f"{n}\n")
        sys.stdout.flush()
        n += 1


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "fsync"))

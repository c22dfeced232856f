"""A process that writes documents until it is killed; it prints the number of each after its call returned."""

from __future__ import annotations

import asyncio
import sys
from itertools import count
from pathlib import Path

from apiserver.stores.documents.query import Update
from apiserver.stores.documents.sqlite.store import SqliteDocumentStore


async def main(path: Path) -> None:
    store = SqliteDocumentStore(path)
    await store.open()
    await store.insert("tasks", [{"id": "last", "n": -1, "last_metrics": {}}])
    for number in count():
        await store.insert("tasks", [{"id": str(number), "name": "x" * 1000}])
        change = Update(set={"n": number, f"last_metrics.m{number % 50}": number})
        await store.update("tasks", {"id": "last"}, change)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))

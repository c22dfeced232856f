"""A process that updates one document many times, as other processes do at the same time."""

from __future__ import annotations

import asyncio
import sys

from apiserver.stores.documents.mongo.store import MongoDocumentStore
from apiserver.stores.documents.query import AtLeast, Update


async def main(uri: str, name: str, times: int) -> None:
    store = MongoDocumentStore(uri)
    await store.open()
    document = {"id": "shared"}
    for number in range(times):
        change = Update(set={"n": 1}, push={"entries": [f"{name}{number}"]}, max={f"last_metrics.m.{name}": number})
        await store.update("tasks", document, change, upsert=document)
        await store.update("tasks", {"n": AtLeast(0)}, Update(push={"many": [1]}), many=True)
        taken = await store.find_and_update("tasks", document, Update(push={"taken": [1]}))
        assert taken is not None
        sys.stdout.write(f"{len(taken['taken'])}\n")
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))

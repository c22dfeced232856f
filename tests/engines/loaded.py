"""Several servers on the nodes of a cluster, under load."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from apiserver.events.model import Owner
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore
from tests.engines import elasticsearch
from tests.engines.fixtures import own_name
from tests.engines.load import Deleter, Load, Reader, Worker, Writer

_OWNERS = (Owner("company", "first"), Owner("company", "second"))
_SERVERS = 3


@asynccontextmanager
async def loaded(hosts: Sequence[str]) -> AsyncIterator[Load]:
    """Three servers, the last of which is strict, which all write, read, delete and compact.

    hosts: the URLs of all nodes.
    """
    address = ElasticsearchAddress(tuple(hosts), own_name())
    async with AsyncExitStack() as stack:
        stores = [
            await stack.enter_async_context(server(address, strict=number == _SERVERS - 1))
            for number in range(_SERVERS)
        ]
        writers = [
            Writer(store=store, owner=owner, name=f"{number}-{owner.id}")
            for number, store in enumerate(stores)
            for owner in _OWNERS
        ]
        readers = [
            Reader(store=store, writers=writers, sees_all=number == _SERVERS - 1) for number, store in enumerate(stores)
        ]
        workers = [Worker(store=store, work=partial(_compact, store)) for store in stores]
        deleters = [_deleter(store, Owner("company", f"of-{number}")) for number, store in enumerate(stores)]
        yield Load(writers, [*readers, *workers, *deleters], server(address, strict=False))
    elasticsearch.remove(hosts[0], address.prefix)


@asynccontextmanager
async def server(address: ElasticsearchAddress, strict: bool) -> AsyncIterator[ElasticsearchEventStore]:
    """A server's store, which is open."""
    store = ElasticsearchEventStore(address, strict=strict, migrate=True)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def _compact(store: ElasticsearchEventStore) -> None:
    """Compact more than the store does by itself."""
    for owner in _OWNERS:
        await store.compact(owner)


def _deleter(store: ElasticsearchEventStore, owner: Owner) -> Deleter:
    return Deleter(store=store, writer=Writer(store=store, owner=owner, name="deleted", overwrites=False))

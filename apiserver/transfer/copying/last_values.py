"""Makes the last values of tasks and models anew from their events. What the source has of them may be outdated.

This is no change of a task, so its times stay those of the source.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby

from apiserver.common.sizes import counted
from apiserver.events.model import Owner
from apiserver.services.events.last_metrics import LastMetrics
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.query import Document, In, Update
from apiserver.stores.events.base import EventStore
from apiserver.transfer.copying.retrying import CopyError, Say, patiently

_TIMES = ("last_update", "last_change")
_PAGE = 1000


async def make_last_values(owners: Collection[Owner], events: EventStore, documents: DocumentStore, say: Say) -> None:
    """Make the last values of the owners. CopyError if an owner's document cannot be written."""
    owners = sorted(owners, key=_collection)
    times = [await _times(collection, list(some), documents, say) for collection, some in groupby(owners, _collection)]
    if left := await LastMetrics(events, documents).write_anew(owners):
        of_some = counted(len(left), "tasks or models")
        raise CopyError(f"the last values of {of_some} cannot be written: run the command again")
    for collection, before in zip(dict.fromkeys(map(_collection, owners)), times, strict=True):
        for one in before:
            said = {name: one[name] for name in _TIMES if name in one}
            await patiently(say, documents.update, collection, {"id": one["id"]}, Update(set=said))


def _collection(owner: Owner) -> str:
    return "models" if owner.is_model else "tasks"


async def _times(collection: str, owners: Sequence[Owner], documents: DocumentStore, say: Say) -> list[Document]:
    times: list[Document] = []
    for start in range(0, len(owners), _PAGE):
        ids = {"id": In([owner.id for owner in owners[start : start + _PAGE]])}
        times += await patiently(say, documents.find, collection, ids, projection=_TIMES)
    return times

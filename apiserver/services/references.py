"""References between documents as `get_all_ex` answers them: `{id, name}` in place of an id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from apiserver.stores.documents.base import Document
from apiserver.stores.documents.scoped import CompanyDocuments


async def names_of(documents: CompanyDocuments, collection: str, ids: Iterable[str | None]) -> dict[str, str]:
    """The names of those documents of the collection that are there, by id."""
    wanted = sorted({id for id in ids if id})
    if not wanted:
        return {}
    found = await documents.find(collection, {"id": {"$in": wanted}}, projection=("name",))
    return {document["id"]: document["name"] for document in found}


async def expand(documents: CompanyDocuments, found: Sequence[Document], references: Mapping[str, str]) -> None:
    """Replace ids by `{id, name}` in place; `references` is field → collection. Ids of nothing keep a null name."""
    for field, collection in references.items():
        names = await names_of(documents, collection, (document.get(field) for document in found))
        for document in found:
            if id := document.get(field):
                document[field] = {"id": id, "name": names.get(id)}

"""References to other documents, as `*_ex` calls answer them: `project: {id, name}` in place of `project: "<id>"`.

References are given as path → collection. Paths may go through lists. Each path costs one query per answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from apiserver.common import answers
from apiserver.services.documents.keys import unescape_keys
from apiserver.stores.documents.query import Document, In
from apiserver.stores.documents.scoped import VisibleDocuments

#: The fields that references show, for collections that also hold others: the preferences of a user, or the tasks that
#: wait in a queue, of which a reader of one task may not know.
PUBLIC_FIELDS = {
    "users": (
        *("id", "name", "given_name", "family_name", "email", "avatar", "role", "company"),
        *("created", "created_in_version", "service"),
    ),
    "queues": (
        *("id", "name", "display_name", "user", "company", "tags", "system_tags", "metadata"),
        *("created", "last_update"),
    ),
}
#: If a referenced document has more bytes than this, every place that shows it counts towards the answer's memory.
_LARGE = 4096


async def names_of(documents: VisibleDocuments, collection: str, ids: Iterable[str | None]) -> dict[str, str]:
    """The names of the collection's documents with these ids, by id. Unknown ids are left out."""
    given = sorted({id for id in ids if id})
    if not given:
        return {}
    named = await documents.find(collection, {"id": In(given)}, projection=("name",))
    return {document["id"]: document["name"] for document in named}


async def expand(
    documents: VisibleDocuments,
    referring: Sequence[Document],
    references: Mapping[str, str],
    fields: Sequence[str] | None = None,
) -> None:
    """Replace ids in the `referring` documents, in place, by `{id, name}`.

    With `fields`, by the id and those of them that lie in its document (`project.tags`). If no document
    has the id, its fields are null.
    """
    for path, collection in references.items():
        beyond = [field.removeprefix(f"{path}.") for field in fields or () if field.startswith(f"{path}.")]
        shown = ["name"] if fields is None else [field for field in beyond if _may_be_shown(collection, field)]
        slots = [slot for document in referring for slot in _slots(document, path.split("."))]
        referred = await _fields_of(documents, collection, {holder[key] for holder, key in slots}, shown)
        missing = {field: None for field in shown if "." not in field}
        sizes = {id: len(orjson.dumps(document)) for id, document in referred.items()}
        if max(sizes.values(), default=0) > _LARGE:  # many documents may refer to a large one
            answers.hold(sum(sizes.get(holder[key], 0) for holder, key in slots))
        for holder, key in slots:
            holder[key] = {"id": holder[key], **referred.get(holder[key], missing)}


def _may_be_shown(collection: str, field: str) -> bool:
    return field != "id" and (collection not in PUBLIC_FIELDS or field.partition(".")[0] in PUBLIC_FIELDS[collection])


async def _fields_of(
    documents: VisibleDocuments, collection: str, ids: set[str], fields: Sequence[str]
) -> dict[str, Document]:
    if not ids or not fields:
        return {}
    by_ids = {"id": In(sorted(ids))}
    referred = await documents.find(collection, by_ids, projection=fields, counted=answers.counter())
    return {document["id"]: unescape_keys(document) for document in referred}


def _slots(value: Any, path: Sequence[str]) -> Iterator[tuple[dict[str, Any], str]]:
    """The (object, key) pairs at `path` whose value is an id."""
    if isinstance(value, list):
        for item in value:
            yield from _slots(item, path)
    elif isinstance(value, dict) and path[0] in value:
        if len(path) > 1:
            yield from _slots(value[path[0]], path[1:])
        elif isinstance(value[path[0]], str) and value[path[0]]:
            yield value, path[0]

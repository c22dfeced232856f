"""References to other documents, as `*_ex` calls answer them: `project: {id, name}` in place of `project: "<id>"`.

References are given as path → collection. Paths may go through lists. Each path costs one query per answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from apiserver.common import answers
from apiserver.services.documents.keys import unescape_keys
from apiserver.services.lists.queries import outermost, projection_of
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
    wanted = sorted({id for id in ids if id})
    if not wanted:
        return {}
    found = await documents.find(collection, {"id": In(wanted)}, projection=("name",))
    return {document["id"]: document["name"] for document in found}


def projection_with(references: Mapping[str, str], request: Mapping[str, Any]) -> list[str] | None:
    """The stored fields for `only_fields`: `project` in place of `project.name` if `project` is a reference."""
    fields = projection_of(request)
    if fields is None:
        return None
    stored = {next((path for path in references if field.startswith(f"{path}.")), field) for field in fields}
    return outermost(stored)


async def expand(
    documents: VisibleDocuments,
    found: Sequence[Document],
    references: Mapping[str, str],
    fields: Sequence[str] | None = None,
) -> None:
    """Replace ids, in place, by `{id, name}`, or by the id and the asked `fields` of its document (`project.tags`).

    If no document has the id, its fields are null.
    """
    for path, collection in references.items():
        beyond = [field.removeprefix(f"{path}.") for field in fields or () if field.startswith(f"{path}.")]
        wanted = ["name"] if fields is None else [field for field in beyond if _may_be_shown(collection, field)]
        slots = [slot for document in found for slot in _slots(document, path.split("."))]
        known = await _fields_of(documents, collection, {holder[key] for holder, key in slots}, wanted)
        unknown = {field: None for field in wanted if "." not in field}
        sizes = {id: len(orjson.dumps(other)) for id, other in known.items()}
        if max(sizes.values(), default=0) > _LARGE:  # many documents may refer to a large one
            answers.hold(sum(sizes.get(holder[key], 0) for holder, key in slots))
        for holder, key in slots:
            holder[key] = {"id": holder[key], **known.get(holder[key], unknown)}


def _may_be_shown(collection: str, field: str) -> bool:
    return field != "id" and (collection not in PUBLIC_FIELDS or field.partition(".")[0] in PUBLIC_FIELDS[collection])


async def _fields_of(
    documents: VisibleDocuments, collection: str, ids: set[str], fields: Sequence[str]
) -> dict[str, Document]:
    if not ids or not fields:
        return {}
    wanted = {"id": In(sorted(ids))}
    others = await documents.find(collection, wanted, projection=fields, counted=answers.counter())
    return {other["id"]: unescape_keys(other) for other in others}


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

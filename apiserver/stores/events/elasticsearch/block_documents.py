"""The documents of an index of blocks: as items of bulk requests, and as hits of searches.

An item is an action and its document: two lines of JSON.

Columns with few bytes are columns of the index (doc values). The others are stored. Whatever is stored of a document is
read together, also if only its `_id` is asked for. So documents have their `id` as a column of the index, too, and
searches for blocks read nothing that is stored. There is no `_source`.

Beside the blocks, an owner has up to three other documents in the index: the note of the last deletion of everything,
whose place is what counts; the note of the last deletion of what lies before some place, which it names; and the lease
of the server that compacts the owner (`leases.py`).
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import orjson

from apiserver.events.model import JsonObject, Owner
from apiserver.events.queries import Range
from apiserver.stores.events.blocks.blocks import Block, Columns, Member, NewBlock, Statement, Version, in_bundle
from apiserver.stores.events.elasticsearch import names

_OF_CHUNKS = ("up_to", "newest", "shift")
_OF_LINES = ("begin", "end", "size")
#: What a hit of a block has to have, and that of a deletion.
FIELDS = ("id", "owner", "metric", "variant", "members", "first", "last", "count", *_OF_CHUNKS, *_OF_LINES, "deleted")
_NOTHING, _ZERO = (None,), (0,)
#: Columns that are stored.
STORED = frozenset({"curve", "details", "lines"})
#: A document that is not there, as a get answers.
NOT_THERE: JsonObject = {}
#: Of the first put of a block. What is there has at least this version, and a removal that a node remembers, too.
_FIRST: JsonObject = {"version": 1, "version_type": "external"}

_members = msgspec.msgpack.Decoder(list[Member])


def deletion_id(owner: Owner) -> str:
    """The id of the document that notes the owner's last deletion."""
    return f"deleted {names.owner_key(owner)}"


def note(owner: Owner, before: JsonObject) -> str:
    """The item that notes a deletion over the note `before`."""
    document = orjson.dumps({"deleted": names.owner_key(owner)}).decode()
    return f"{action_over(before, deletion_id(owner), owner)}{document}\n"


def deletion_before_id(owner: Owner) -> str:
    """The id of the document that notes a deletion of what lies before some place."""
    return f"deleted before {names.owner_key(owner)}"


def deletion_ids(owner: Owner) -> list[str]:
    """The ids of all notes of deletions that an owner may have."""
    return [deletion_id(owner), deletion_before_id(owner)]


def note_before(owner: Owner, place: int, before: JsonObject) -> str:
    """The item that notes a deletion of what lies before a place, over the note `before`."""
    document = orjson.dumps({"deleted": names.owner_key(owner), "up_to": place - 1}).decode()
    return f"{action_over(before, deletion_before_id(owner), owner)}{document}\n"


def deleted_before(hit: JsonObject) -> int:
    """What a note says, by a hit: nothing counts that lies before this place."""
    up_to: int | None = hit["fields"].get("up_to", _NOTHING)[0]
    place: int = hit["_seq_no"]
    return place if up_to is None else up_to + 1


def action(name: str, id: str, owner: Owner, **more: Any) -> str:
    """The first line of an item, or all of it if there is no document."""
    return orjson.dumps({name: {"_id": id, "routing": names.owner_key(owner), **more}}).decode() + "\n"


def action_over(before: JsonObject, id: str, owner: Owner) -> str:
    """The first line of an item that is done only if the document is still as it was found, or still not there."""
    if "_seq_no" not in before:
        return action("create", id, owner)
    return action("index", id, owner, if_seq_no=before["_seq_no"], if_primary_term=before["_primary_term"])


def item(block: NewBlock, before: JsonObject | None) -> str:
    """The item that puts a block over the document `before`. None: no such block is there, or was."""
    id, owner = block.id, block.owner
    first = action("index", id, owner, **_FIRST) if before is None else action_over(before, id, owner)
    key = names.owner_key(owner)
    document: JsonObject = {
        "id": id,
        "owner": key,
        **(_of_bundle(key, block.members) if block.members else _of_series(key, *block.series)),
        "first": block.first,
        "last": block.last,
        "count": block.count,
        **{name: value for name in _OF_CHUNKS if (value := getattr(block.statement, name, None)) is not None},
        **{name: value for name in _OF_LINES if (value := getattr(block, name))},
        **{name: b2a_base64(column, newline=False).decode() for name, column in block.columns.items()},
    }
    return first + orjson.dumps(document).decode() + "\n"


def _of_series(owner: str, metric: str, variant: str) -> JsonObject:
    return {"series": names.series_of(owner, metric, variant), "metric": metric, "variant": variant}


def _of_bundle(owner: str, members: Sequence[Member]) -> JsonObject:
    """By its fields `series` and `metric` a bundle is found; what it has of each series is told by `members`."""
    return {
        "series": [names.series_of(owner, *one.series) for one in members],
        "metric": [*dict.fromkeys(one.series[0] for one in members)],
        "members": b2a_base64(msgspec.msgpack.encode(members), newline=False).decode(),
    }


def id_of(item: str) -> str:
    """The id of the block of an item."""
    (action,) = orjson.loads(item.partition("\n")[0]).values()
    id: str = action["_id"]
    return id


def asking_for(columns: Iterable[str]) -> JsonObject:
    """What a search says for its hits to have these columns, and the ids of their blocks."""
    stored = [name for name in columns if name in STORED]
    return {
        "_source": False,
        "track_total_hits": False,
        "seq_no_primary_term": True,
        "stored_fields": stored or "_none_",
        "docvalue_fields": ["id", *(name for name in columns if name not in STORED)],
    }


def blocks_of(hit: JsonObject, owners: Mapping[str, Owner]) -> list[Block]:
    """The blocks of a hit, whose owner is one of these by their keys. There may be thousands: this has to be quick."""
    fields: Mapping[str, Sequence[Any]] = hit["fields"]
    owner, version = owners[fields["owner"][0]], Version(hit["_seq_no"], hit["_primary_term"])
    if "members" in fields:
        return in_bundle(owner, fields["id"][0], version, _members.decode(a2b_base64(fields["members"][0])))
    statement = None
    if "up_to" in fields:
        statement = Statement(fields["up_to"][0], fields.get("newest", _NOTHING)[0], fields["shift"][0])
    block = Block(
        owner,
        (fields["metric"][0], fields["variant"][0]),
        fields["id"][0],
        version,
        fields["first"][0],
        fields["last"][0],
        fields["count"][0],
        statement,
        *(fields.get(name, _ZERO)[0] for name in _OF_LINES),
    )
    return [block]


def told_of(hit: JsonObject) -> tuple[str, list[tuple[str, str, Range]]]:
    """The key of the owner of a hit, the metric and variant of each of its series, and the ends of their points."""
    fields = {name: values[0] for name, values in hit["fields"].items()}
    if "members" in fields:
        members = _members.decode(a2b_base64(fields["members"]))
    else:
        members = [Member((fields["metric"], fields["variant"]), fields["first"], fields["last"], 0)]
    return fields["owner"], [(*one.series, Range(one.first, one.last)) for one in members]


def deletion_of(hit: JsonObject) -> str | None:
    """The key of the owner whose deletion a hit notes; None: it is a block."""
    key: str | None = hit["fields"].get("deleted", _NOTHING)[0]
    return key


def columns_of(hit: JsonObject, columns: Sequence[str]) -> Columns:
    """These columns of a hit. An answer in JSON has them in base64, one in CBOR only those that are not stored."""
    found = ((name, hit["fields"][name][0]) for name in columns)
    return {name: a2b_base64(value) if isinstance(value, str) else value for name, value in found}

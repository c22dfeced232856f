"""Which updates MongoDB applies by itself, and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.stores.documents.base import Index, InvalidDocument, Update
from apiserver.stores.documents.dialect.updates import ParsedUpdate
from apiserver.stores.documents.mongo.layout import Layout
from apiserver.stores.documents.mongo.native import MANY_FIELDS, NativeUpdate, native_update
from apiserver.stores.documents.query import AtLeast, In

LAYOUT = Layout.of(
    "things",
    [Index("things", ("key",)), Index("things", ("deep.key",)), Index("things", ("company", "name"), unique=True)],
)


def native(update: Update) -> NativeUpdate | None:
    return native_update(LAYOUT, update, ParsedUpdate(update))


@pytest.mark.parametrize(
    ("update", "sent"),
    [
        ({"$set": {"a": 1}, "$max": {"n": 2}}, {"$set": {"a": 1}, "$max": {"n": 2}}),
        ({"$unset": {"a": 1, "key": 1, "deep": 1}}, {"$set": {}, "$unset": {"a": 1, "key": 1, "deep": 1}}),
        ({"$set": {"a": [1, {"c": float("nan")}]}}, {"$set": {"a": [1, {"c": None}]}}),
        ({"$set": {"key": "x"}}, {"$set": {"key": "x"}}),
        ({"$set": {"_rev": 1, "a": 2}}, {"$set": {"__rev": 1, "a": 2}}),
        ({"$set": {}, "$min": {"a": 1}}, {"$set": {}, "$min": {"a": 1}}),
    ],
)
def test_what_fits_every_document_is_sent(update: Update, sent: dict[str, Any]) -> None:
    found = native(update)
    assert found is not None
    assert found.update["$set"].pop("_rev")
    assert (found.update, found.guard) == (sent, [])


def or_missing(name: str, **condition: Any) -> dict[str, Any]:
    return {"$or": [{name: {"$exists": False}}, {name: {f"${op}": value for op, value in condition.items()}}]}


AN_OBJECT = {"type": "object", "not": {"$type": "array"}}


@pytest.mark.parametrize(
    ("update", "guard"),
    [
        ({"$set": {"a.b.c": 1, "a.d": 2}}, [or_missing("a", **AN_OBJECT), or_missing("a.b", **AN_OBJECT)]),
        ({"$push": {"a": [1]}}, [or_missing("a", type="array")]),
        ({"$addToSet": {"tags": {"$each": ["x", "y"]}}}, [or_missing("tags", type="array")]),
        ({"$pull": {"tags": In(["x"])}}, [or_missing("tags", type="array")]),
        ({"$pull": {"entries": {"task": "x"}}}, [or_missing("entries", type="array")]),
    ],
)
def test_what_may_not_fit_is_guarded(update: Update, guard: list[dict[str, Any]]) -> None:
    found = native(update)
    assert found is not None
    assert found.guard == guard


@pytest.mark.parametrize(
    "update",
    [
        {"$push": {"a": {"$each": []}}},
        {"$addToSet": {"a": 1}},
        {"$pull": {"a": 1}},
        {"$pull": {"a": {}}},
        {"$pull": {"a": AtLeast("x")}},
        {"$set": {"a": 1}, "$pull": {"b": {"c": 1}}},
        {"$set": {"a.0": 1}},
        {"$set": {"id": "x"}},
        {"$set": {"name": "x"}},
        {"$set": {"key": [1]}},
        {"$set": {"deep": {"key": 1}}},
        {"$set": {"deep.other": 1}},
        {"$max": {"key": 1}},
        {"$set": {f"a{number}": 1 for number in range(MANY_FIELDS + 1)}},
    ],
)
def test_all_else_is_worked_out_here(update: Update) -> None:
    assert native(update) is None


@pytest.mark.parametrize("value", [object(), 2**70, "\ud800"])
def test_what_cannot_be_kept_is_not_sent(value: object) -> None:
    with pytest.raises(InvalidDocument):
        native({"$set": {"a": value}})

"""Which updates MongoDB applies by itself, and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.stores.documents.base import Index, InvalidDocument
from apiserver.stores.documents.dialect.updates import ParsedUpdate
from apiserver.stores.documents.mongo.layout import Layout
from apiserver.stores.documents.mongo.native import MANY_FIELDS, NativeUpdate, native_update
from apiserver.stores.documents.query import AtLeast, In, Update

LAYOUT = Layout.of(
    "things",
    [Index("things", ("key",)), Index("things", ("deep.key",)), Index("things", ("company", "name"), unique=True)],
)


def native(update: Update) -> NativeUpdate | None:
    return native_update(LAYOUT, update, ParsedUpdate(update))


@pytest.mark.parametrize(
    ("update", "sent"),
    [
        (Update(set={"a": 1}, max={"n": 2}), {"$set": {"a": 1}, "$max": {"n": 2}}),
        (Update(unset=["a", "key", "a"]), {"$set": {}, "$unset": {"a": True, "key": True}}),
        (Update(set={"a": [1, {"c": float("nan")}]}), {"$set": {"a": [1, {"c": None}]}}),
        (Update(set={"key": "x"}), {"$set": {"key": "x"}}),
        (Update(set={"_rev": 1, "a": 2}), {"$set": {"__rev": 1, "a": 2}}),
        (Update(min={"a": 1}), {"$set": {}, "$min": {"a": 1}}),
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
        (Update(set={"a.b.c": 1, "a.d": 2}), [or_missing("a", **AN_OBJECT), or_missing("a.b", **AN_OBJECT)]),
        (Update(push={"a": [[1]]}), [or_missing("a", type="array")]),
        (Update(add={"tags": ["x", "y"]}), [or_missing("tags", type="array")]),
        (Update(pull={"tags": In(["x"])}), [or_missing("tags", type="array")]),
        (Update(pull={"entries": {"task": "x"}}), [or_missing("entries", type="array")]),
    ],
)
def test_what_may_not_fit_is_guarded(update: Update, guard: list[dict[str, Any]]) -> None:
    found = native(update)
    assert found is not None
    assert found.guard == guard


@pytest.mark.parametrize(
    "update",
    [
        Update(push={"a": []}),
        Update(add={"a": [1]}),
        Update(pull={"a": 1}),
        Update(pull={"a": {}}),
        Update(pull={"a": AtLeast("x")}),
        Update(set={"a": 1}, pull={"b": {"c": 1}}),
        Update(set={"a.0": 1}),
        Update(set={"id": "x"}),
        Update(set={"name": "x"}),
        Update(set={"key": [1]}),
        Update(set={"deep": {"key": 1}}),
        Update(set={"deep.other": 1}),
        Update(max={"key": 1}),
        Update(set={f"a{number}": 1 for number in range(MANY_FIELDS + 1)}),
    ],
)
def test_all_else_is_worked_out_here(update: Update) -> None:
    assert native(update) is None


@pytest.mark.parametrize("value", [object(), 2**70, "\ud800"])
def test_what_cannot_be_kept_is_not_sent(value: object) -> None:
    with pytest.raises(InvalidDocument):
        native(Update(set={"a": value}))

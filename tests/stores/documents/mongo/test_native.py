"""Which updates MongoDB applies by itself, and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.stores.documents.base import Index, InvalidDocument, Update
from apiserver.stores.documents.dialect.updates import ParsedUpdate
from apiserver.stores.documents.mongo.layout import Layout
from apiserver.stores.documents.mongo.native import MANY_FIELDS, NativeUpdate, native_update

LAYOUT = Layout.of(
    "things",
    [Index("things", ("key",)), Index("things", ("deep.key",)), Index("things", ("company", "name"), unique=True)],
)


def native(update: Update) -> NativeUpdate | None:
    return native_update(LAYOUT, update, ParsedUpdate(update))


@pytest.mark.parametrize(
    ("update", "sent", "fits_all"),
    [
        ({"$set": {"a": 1}, "$max": {"n": 2}}, {"$set": {"a": 1}, "$max": {"n": 2}}, True),
        ({"$unset": {"a": 1, "key": 1, "deep": 1}}, {"$set": {}, "$unset": {"a": 1, "key": 1, "deep": 1}}, True),
        ({"$set": {"a.b": [1, {"c": float("nan")}]}}, {"$set": {"a.b": [1, {"c": None}]}}, False),
        ({"$set": {"key": "x", "deep.key": 1}}, {"$set": {"key": "x", "deep.key": 1}}, False),
        ({"$set": {"_rev": 1, "a": 2}}, {"$set": {"__rev": 1, "a": 2}}, True),
        ({"$set": {}, "$min": {"a": 1}}, {"$set": {}, "$min": {"a": 1}}, True),
    ],
)
def test_what_can_only_mean_one_thing_is_sent(update: Update, sent: dict[str, Any], fits_all: bool) -> None:
    found = native(update)
    assert found is not None
    assert found.update["$set"].pop("_rev")
    assert (found.update, found.fits_all) == (sent, fits_all)


@pytest.mark.parametrize(
    "update",
    [
        {"$inc": {"a": 1}},
        {"$push": {"a": 1}},
        {"$set": {"a": 1}, "$pull": {"b": 1}},
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

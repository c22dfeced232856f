"""What the contract of the document stores cannot see of updates."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.stores.documents.base import InvalidFilter
from apiserver.stores.documents.dialect.updates import ParsedUpdate
from apiserver.stores.documents.query import Greater, Matches, Update


def test_an_update_knows_which_fields_it_may_touch() -> None:
    update = ParsedUpdate(Update(set={"a.b": 1, "c": 2}, unset=["a.x"], push={"d.e.f": [1]}))
    assert update.roots == {"a", "c", "d"}


def test_one_update_changes_many_documents_apart() -> None:
    update = ParsedUpdate(Update(set={"a": []}, push={"b": [1]}, max={"n": 1}))
    first, second = update.apply({"id": "1"}), update.apply({"id": "2", "b": [0], "n": 2})
    assert first == {"id": "1", "a": [], "b": [1], "n": 1}
    assert second == {"id": "2", "a": [], "b": [0, 1], "n": 2}


def test_the_lists_of_an_update_are_not_shared_with_the_document() -> None:
    given: list[Any] = [1]
    update = ParsedUpdate(Update(push={"a": given}))
    document = update.apply({"id": "x"})
    document["a"].append(2)
    assert given == [1]
    assert update.apply({"id": "x"}) == {"id": "x", "a": [1]}


@pytest.mark.parametrize(
    ("pulled", "left"),
    [
        ({"b": 1}, [5, {"c": 2}, [6]]),
        ({"b": None}, [5, {"b": [1]}, [6]]),
        (Greater(4), [{"b": [1]}, {"c": 2}]),
    ],
)
def test_items_are_pulled_by_their_fields_or_by_tests(pulled: Any, left: list[Any]) -> None:
    document = {"id": "x", "a": [5, {"b": [1]}, {"c": 2}, [6]]}
    assert ParsedUpdate(Update(pull={"a": pulled})).apply(document)["a"] == left


def test_an_id_may_be_set_to_itself() -> None:
    assert ParsedUpdate(Update(set={"id": "x", "n": 1})).apply({"id": "x"}) == {"id": "x", "n": 1}


@pytest.mark.parametrize(
    ("update", "message"),
    [
        (Update(set={"a": 1}, max={"a": 1}), "field 'a': updated twice"),
        (Update(set={"a.b.c": 1}, max={"a": 1}), "field 'a.b.c': updated together"),
        (Update(pull={"a": Matches("(")}), "field 'a'"),
        (Update(unset=["a.$b"]), "field 'a.\\$b'"),
    ],
)
def test_a_malformed_update_names_its_field(update: Update, message: str) -> None:
    with pytest.raises(InvalidFilter, match=message):
        ParsedUpdate(update)

"""Many documents are sorted as the dialect says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.stores.documents.dialect.sorts import in_order, parse_sort
from apiserver.stores.documents.mongo.ordering import ids_in_order
from apiserver.stores.documents.query import Sort
from tests.stores.documents import strategies

values = strategies.values | st.sampled_from(["1", "1.0", "10", " 1", 1, 1.0, True, 0.0, -0.0])
documents = st.lists(st.fixed_dictionaries({}, optional={"f0": values, "f1": values}), max_size=8)
directions = st.sampled_from([1, -1])


@pytest.mark.test
@given(documents, directions, directions, st.booleans(), st.booleans())
def test_ids_come_in_the_order_of_the_dialect(
    given: list[dict[str, Any]], first: int, second: int, numeric: bool, by_id: bool
) -> None:
    sort: Sort = [("f0", first), ("f1", second), *([("id", 1)] if by_id else [])]
    terms = parse_sort(sort, ["f0"] if numeric else [])
    expected = in_order([{"id": f"{n:x}", **document} for n, document in enumerate(given)], terms)
    found = [{"_id": f"{n:x}", **document} for n, document in reversed(list(enumerate(given)))]
    assert ids_in_order(found, terms) == [document["id"] for document in expected]

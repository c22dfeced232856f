"""Identity in Elasticsearch: what is the same event has the same id, and what is not has another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.model import EventType, Owner
from apiserver.stores.events.base import EventStoreError
from apiserver.stores.events.elasticsearch import names

int64 = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(int64, min_size=1, max_size=20))
def test_ids_of_a_series_are_as_many_as_its_iterations_and_sort_like_them(iters: list[int]) -> None:
    hashed = names.series_hash("task:t", "m", "v")
    ids = [names.id_of(hashed, iter) for iter in iters]
    assert len(set(ids)) == len(set(iters))
    assert all(len(id) == 32 for id in ids)
    # What differs begins behind the same prefix, which is what makes ids cheap to keep.
    assert len({id[:20] for id in ids}) == 1


@pytest.mark.parametrize(
    ("iter", "end"), [(-(2**63), "AAAAAAAAAAA"), (-1, "H__________"), (5, "IAAAAAAAAAF"), (2**63 - 1, "P__________")]
)
def test_ids_stay_the_same_in_all_versions(iter: int, end: str) -> None:
    """Otherwise an event that is sent again, after an upgrade, is stored once more."""
    assert names.id_of(names.series_hash("o", "m", "v"), iter) == f"dTnMvkNQmSEQMRAOf_vI1{end}"


@given(st.lists(st.text(max_size=4), max_size=4), st.lists(st.text(max_size=4), max_size=4))
def test_names_are_not_confused(one: list[str], other: list[str]) -> None:
    assert (names.series_hash(*one) == names.series_hash(*other)) == (one == other)


@given(st.text(max_size=20))
def test_a_company_is_known_by_its_index(company: str) -> None:
    for index in (names.index("events", EventType.PLOT, company), names.blocks("events", EventType.LOG, company)):
        assert index == index.lower()
        assert not set(index) & set('\\/*?"<>| ,#:')
        assert len(index.encode()) <= 255
        assert names.company_of("events", index) == company


def test_a_company_without_an_index_is_an_error() -> None:
    with pytest.raises(EventStoreError, match="too long"):
        names.index("events", EventType.LOG, "Ü" * 100)


@pytest.mark.parametrize("owner", [Owner("c", "t"), Owner("c", "t", True), Owner("c", "model:t"), Owner("c", "")])
def test_an_owner_is_known_by_its_key(owner: Owner) -> None:
    assert names.owner_of(owner.company, names.owner_key(owner)) == owner

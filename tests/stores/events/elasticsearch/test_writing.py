"""Samples as items: what Elasticsearch is sent, and in which order."""

from __future__ import annotations

import os
from base64 import b64decode
from collections.abc import Sequence

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.model import EventType, Sample
from apiserver.stores.events.elasticsearch.bounds import BOUNDS
from apiserver.stores.events.elasticsearch.writing import items, packed, repeats, unpacked
from tests.contract.event_stores import OWNER, sample

LARGE_SAMPLE = BOUNDS.large_sample


def test_a_sample_is_an_item() -> None:
    (item,) = items("events", [sample(7, key="k", timestamp=9, type=EventType.VECTOR)], LARGE_SAMPLE)
    action, document = map(orjson.loads, item.splitlines())
    assert action["index"].pop("_id")
    assert action == {"index": {"_index": "events-vectors-company", "routing": "task:task"}}
    assert document.pop("series")
    assert unpacked(b64decode(document.pop("document"))) == b'{"iter": 7}'
    assert document == {
        **{"owner": "task:task", "metric": "plots", "variant": "roc", "key": "k", "iter": 7, "timestamp": 9}
    }


def test_what_is_large_says_how_large() -> None:
    plots = [sample(n, document=b'"%b"' % os.urandom(n).hex().encode()) for n in (LARGE_SAMPLE // 2, LARGE_SAMPLE)]
    small, large = (orjson.loads(item.splitlines()[1]) for item in items("events", plots, LARGE_SAMPLE))
    assert (small.get("large"), large["large"]) == (None, len(large["document"]))


def test_each_identity_has_an_id_of_its_own() -> None:
    others = [sample(2), sample(1, key="k"), sample(1, metric="other"), sample(1, owner=OWNER._replace(is_model=True))]
    ids = [
        orjson.loads(item.splitlines()[0])["index"]["_id"]
        for item in items("events", [sample(1), *others], LARGE_SAMPLE)
    ]
    assert len({*ids}) == len(ids)
    (again,) = items("events", [sample(1, document=b"{}")], LARGE_SAMPLE)
    assert orjson.loads(again.splitlines()[0])["index"]["_id"] == ids[0]


@given(st.binary(max_size=2000).map(lambda text: b'{"x": "%s"}' % text))
def test_a_document_is_unpacked_as_it_was(document: bytes) -> None:
    assert unpacked(packed(document)) == document


def test_a_large_document_is_compressed() -> None:
    assert len(packed(b'{"x": "%s"}' % (b"plot " * 1000))) < 200


@pytest.mark.parametrize(
    ("sent", "expected"), [([], False), ([sample(1), sample(2)], False), ([sample(1), sample(1)], True)]
)
def test_samples_that_may_overwrite_each_other_are_known(sent: Sequence[Sample], expected: bool) -> None:
    assert repeats(sent) == expected

"""Batches as items: what Elasticsearch is sent, and in which order."""

from __future__ import annotations

import math
import os
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.model import EventBatch
from apiserver.stores.events.elasticsearch.writing import (
    LARGE_LINE,
    LARGE_SAMPLE,
    Items,
    Sequence,
    packed,
    repeats,
    unpacked,
)
from tests.contract.event_stores import OWNER, RECEIVED, batch, lines, sample, scalars

MAIN = "events-scalars-company"


def items_of(sent: EventBatch, main: str | None = None) -> list[tuple[Any, Any]]:
    """Action and document of each item."""
    found = [item.splitlines() for item in Items("events").of(sent, main)]
    return [(orjson.loads(action), orjson.loads(document)) for action, document in found]


def test_a_point_is_an_item() -> None:
    ((action, document),) = items_of(batch(scalars([0.5], iters=[7], timestamps=[9])))
    assert set(action["index"]) == {"_index", "routing", "_id"}
    assert (action["index"]["_index"], action["index"]["routing"]) == (MAIN, "task:task")
    assert document.pop("series")
    assert document == {
        "owner": "task:task",
        "metric": "loss",
        "variant": "train",
        "worker": "worker",
        "received": RECEIVED,
        "iter": 7,
        "timestamp": 9,
        "value": 0.5,
    }


def test_what_is_large_says_how_large() -> None:
    sent = lines(["a" * (LARGE_LINE - 2), "a" * (LARGE_LINE - 1), "ä" * (LARGE_LINE // 2)])
    sent.extras[0] = b'{"b":1}'
    plots = [sample(n, document=b'"%b"' % os.urandom(n).hex().encode()) for n in (LARGE_SAMPLE // 2, LARGE_SAMPLE)]
    documents = [document for _, document in items_of(batch(sent, *plots))]
    assert [one.get("large") for one in documents[:3]] == [LARGE_LINE - 1 + 7, LARGE_LINE, LARGE_LINE + 1]
    assert [one.get("large") for one in documents[3:]] == [None, len(documents[4]["document"])]


def test_items_for_the_main_index_do_not_name_it() -> None:
    sent = batch(scalars([1.0]), lines(["a"]), sample(1))
    indices = [next(iter(action.values())).get("_index") for action, _ in items_of(sent, MAIN)]
    assert indices == [None, "events-logs-company", "events-plots-company"]


def test_values_that_are_not_finite_are_kept_apart() -> None:
    documents = [document for _, document in items_of(batch(scalars([math.nan, math.inf, -math.inf])))]
    assert [("value" in one, one["special"]) for one in documents] == [(False, 0), (False, 1), (False, -1)]


def test_a_body_sent_again_has_the_same_ids_and_others_have_others() -> None:
    def ids(*sent: Any) -> list[str]:
        return [action["create"]["_id"] for action, _ in items_of(batch(*sent))]

    known = lines(["a", "a"], digest=b"body")
    assert ids(known) == ids(known)
    # Two groups of one body are numbered through.
    assert len(set(ids(known, known))) == 4
    assert not set(ids(lines(["a"]))) & set(ids(lines(["a"])))
    other = lines(["a"], digest=b"body", owner=OWNER._replace(is_model=True))
    assert not set(ids(known)) & set(ids(other))


def test_lines_are_numbered_in_the_order_they_came() -> None:
    items = Items("events")
    numbers = [
        orjson.loads(item.splitlines()[1])["sequence"] for _ in range(3) for item in items.of(batch(lines("abc")))
    ]
    assert numbers == sorted(set(numbers))
    assert 0 < numbers[0] < 2**62


def test_servers_do_not_give_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = iter([b"\1\0", b"\2\0"])
    with monkeypatch.context() as patch:
        patch.setattr(os, "urandom", lambda _: next(servers))
        one, other = Sequence(), Sequence()
    assert not {*one.take(1000)} & {*other.take(1000)}


@given(st.binary(max_size=2000).map(lambda text: b'{"x": "%s"}' % text))
def test_a_document_is_unpacked_as_it_was(document: bytes) -> None:
    assert unpacked(packed(document)) == document


def test_a_large_document_is_compressed() -> None:
    assert len(packed(b'{"x": "%s"}' % (b"plot " * 1000))) < 200


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (batch(), False),
        (batch(scalars([1.0, 2.0]), scalars([1.0], variant="b"), sample(1), sample(2), lines(["a", "a"])), False),
        (batch(scalars([1.0, 2.0], iters=[3, 3])), True),
        (batch(scalars([1.0, 2.0], iters=[4, 3])), True),
        (batch(scalars([1.0]), scalars([1.0], worker="other")), True),
        (batch(sample(1), sample(1)), True),
    ],
)
def test_a_batch_that_may_overwrite_itself_is_known(sent: EventBatch, expected: bool) -> None:
    assert repeats(sent) == expected

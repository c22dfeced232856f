"""What every event store does with vectors, plots and debug images, by its protocol alone."""

from __future__ import annotations

from itertools import product

import pytest

from apiserver.events.model import SAMPLE_TYPES, EventType, MetricSelection, SamplePosition, SampleSeries, SeriesName
from apiserver.events.queries import PageQuery, Range, SeriesQuery
from apiserver.stores.events.sizes import PAGE_BYTES, may_go_on
from tests.contract.event_stores import OWNER, PLOTS, Case, batch, case, iters, sample, select

__all__ = ["case"]

pytestmark = pytest.mark.anyio

PLOT = EventType.PLOT


async def test_a_sample_comes_back_as_it_was(case: Case) -> None:
    sent = {
        type: sample(3, type=type, key="k", timestamp=99, document=b'{"x": "\\u0000", "y": "%s"}' % type.encode())
        for type in SAMPLE_TYPES
    }
    await case.store.add(batch(*sent.values()))
    await case.settle()
    for type in SAMPLE_TYPES:
        assert await case.store.samples(SeriesQuery(OWNER, type), PageQuery(10)) == [sent[type]]


async def test_the_later_sample_of_an_identity_counts(case: Case) -> None:
    for document in (b"1", b"2", b"3"):
        same = sample(0, document=document, timestamp=50 - int(document))
        await case.store.add(batch(same, sample(1, key=f"{document!r}")))
        await case.settle()
    documents = [one.document for one in await case.store.samples(PLOTS, PageQuery(10), Range.of(None, 0))]
    assert documents == [b"3"]
    assert await case.store.events_count(OWNER) == 4
    assert await case.store.sample_series(PLOTS) == [SampleSeries("plots", "roc", 4, 0, 1, 47)]


async def test_series_are_sorted_and_selected(case: Case) -> None:
    for n in (5, 2, 9):
        await case.store.add(batch(*(sample(n, metric=m, variant=v, timestamp=100 - n) for m in "ba" for v in "yx")))
        await case.settle()
    found = await case.store.sample_series(PLOTS)
    assert found == [SampleSeries(m, v, 3, 2, 9, 98) for m in "ab" for v in "xy"]
    assert await case.store.sample_series(select(PLOTS, MetricSelection("b", ("x",)))) == [found[2]]
    assert await case.store.sample_series(SeriesQuery(OWNER, EventType.IMAGE)) == []


async def test_pages_neither_skip_nor_repeat(case: Case) -> None:
    expected = []
    for n in (3, 1, 2):
        added = [sample(n, metric=m, variant=v, key=k) for m in "ba" for v in "xy" for k in ("", "k")]
        await case.store.add(batch(*added))
        await case.settle()
        expected += [SamplePosition(one.iter, one.metric, one.variant, one.key) for one in added]
    for descending, limit in product((False, True), (1, 4, 100)):
        walked: list[SamplePosition] = []
        page = await case.store.samples(PLOTS, PageQuery(limit, descending=descending))
        while page:
            assert len(page) <= limit
            walked += [SamplePosition(one.iter, one.metric, one.variant, one.key) for one in page]
            page = await case.store.samples(PLOTS, PageQuery(limit, walked[-1], descending=descending))
        assert walked == sorted(expected, reverse=descending)


async def test_iterations_are_bounded_inclusively(case: Case) -> None:
    await case.store.add(batch(*(sample(n) for n in range(-5, 10, 3))))
    await case.settle()
    assert await iters(case.store, iterations=Range.of(-2, 4)) == [-2, 1, 4]
    assert await iters(case.store, iterations=Range.of(5, None)) == [7]
    assert await iters(case.store, iterations=Range.of(None, -5), descending=True) == [-5]
    after = SamplePosition(1, "plots", "roc", "")
    assert await iters(case.store, iterations=Range.of(-5, 4), after=after) == [4]
    assert await iters(case.store, iterations=Range.of(-2, 4), after=after, descending=True) == [-2]


async def test_the_newest_samples_of_each_series(case: Case) -> None:
    await case.store.add(batch(*(sample(n, variant="a") for n in (1, 5, 3))))
    await case.settle()
    await case.store.add(batch(sample(4, variant="a"), sample(2, variant="b"), sample(4, variant="a", key="k")))
    found = await case.store.latest_samples(PLOTS, 2)
    assert [(one.variant, one.iter, one.key) for one in found] == [
        ("a", 5, ""),
        ("a", 4, ""),
        ("a", 4, "k"),
        ("b", 2, ""),
    ]
    found = await case.store.latest_samples(select(PLOTS, MetricSelection("plots", ("b",))), 1)
    assert [(one.variant, one.iter) for one in found] == [("b", 2)]
    found = await case.store.latest_samples(PLOTS, 2**40)
    assert [(one.variant, one.iter) for one in found] == [*zip("aaaaab", (5, 4, 4, 3, 1, 2), strict=True)]


async def test_a_page_ends_when_it_is_large(case: Case) -> None:
    text = b'"%b"' % (b"x" * (PAGE_BYTES * 2 // 5))
    for n in range(7):
        await case.store.add(batch(sample(n, variant="ab"[n % 2], document=text)))
        await case.settle()
    pages = [await iters(case.store, limit=100)]
    while pages[-1]:
        last = pages[-1][-1]
        pages.append(await iters(case.store, after=SamplePosition(last, "plots", "ab"[last % 2], ""), limit=100))
    assert pages == [[0, 1, 2], [3, 4, 5], [6], []]
    assert await iters(case.store, descending=True, limit=2) == [6, 5]

    latest = [await case.store.latest_samples(PLOTS, 3)]
    assert may_go_on(latest[0], 1000)
    while latest[-1]:
        last = latest[-1][-1].iter
        after = SamplePosition(last, "plots", "ab"[last % 2], "")
        latest.append(await case.store.latest_samples(PLOTS, 3, after))
    assert [[one.iter for one in page] for page in latest] == [[6, 4, 2], [5, 3, 1], []]


async def test_iterations_are_walked_both_ways(case: Case) -> None:
    await case.store.add(batch(*(sample(n, variant="a") for n in (1, 3, 5))))
    await case.settle()
    await case.store.add(batch(*(sample(n, variant="b", key=k) for n in (3, 4) for k in "xy")))
    await case.settle()
    assert await case.store.sample_iterations(PLOTS, PageQuery(10, descending=True)) == [5, 4, 3, 1]
    assert await case.store.sample_iterations(PLOTS, PageQuery(1, 4, descending=True)) == [3]
    assert await case.store.sample_iterations(PLOTS, PageQuery(10, 3)) == [4, 5]
    only_b = [MetricSelection("plots", ("b",))]
    assert await case.store.sample_iterations(select(PLOTS, *only_b), PageQuery(10)) == [3, 4]
    assert (
        await case.store.sample_iterations(SeriesQuery(OWNER, EventType.VECTOR), PageQuery(10, descending=True)) == []
    )


async def test_samples_are_deleted_by_series_iteration_and_age(case: Case) -> None:
    added = [sample(n, variant=v, timestamp=100 - n) for n in range(6) for v in "ab"]
    await case.store.add(batch(*added, sample(0, type=EventType.VECTOR)))
    await case.settle()
    only_a = select(PLOTS, MetricSelection("plots", ("a",)))
    assert await case.store.delete_samples(only_a, Range.of(None, 2), 99) == 1
    left = [one for one in added if (one.variant, one.iter) != ("a", 2)]
    assert await case.store.samples(PLOTS, PageQuery(100)) == left
    assert await case.store.delete_samples(PLOTS, before=97) == 4
    left = [one for one in left if one.iter < 4]
    assert await case.store.samples(PLOTS, PageQuery(100)) == left
    assert await case.store.delete_samples(only_a) == 3
    left = [one for one in left if one.variant == "b"]
    assert await case.store.samples(PLOTS, PageQuery(100)) == left
    assert [one.variant for one in await case.store.sample_series(PLOTS)] == ["b"]
    assert await case.store.series(OWNER) == [
        SeriesName(EventType.PLOT, "plots", "b"),
        SeriesName(EventType.VECTOR, "plots", "roc"),
    ]
    assert await case.store.delete_samples(only_a) == 0
    assert await case.store.events_count(OWNER) == len(left) + 1


async def test_names_and_keys_may_be_any_text(case: Case) -> None:
    texts = ["", "\0", "a\0b", "ÿ\U0001f600", "x" * 1000]
    sent = [sample(0, metric=text, variant=text, key=text) for text in texts]
    await case.store.add(batch(*sent))
    await case.settle()
    found = await case.store.samples(PLOTS, PageQuery(10))
    assert found == sorted(sent, key=lambda one: one.metric)


async def test_a_large_document(case: Case) -> None:
    document = b'{"plot": "' + bytes(range(32, 127)).replace(b'"', b"").replace(b"\\", b"") * 20_000 + b'"}'
    await case.store.add(batch(sample(1, document=document)))
    await case.settle()
    (found,) = await case.store.samples(PLOTS, PageQuery(1))
    assert found.document == document

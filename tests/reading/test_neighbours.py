"""Walks from sample to sample."""

from __future__ import annotations

import orjson
import pytest

from apiserver.events.model import EventType, Sample
from apiserver.reading import neighbours
from apiserver.reading.neighbours import Place, ShownSamples
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.reading.events import NOW, TASK, sample, samples

pytestmark = pytest.mark.anyio

Shown = tuple[int, str, str]


def image(iter: int, metric: str = "im", variant: str = "a", url: str | None = None, key: str = "") -> Sample:
    document = orjson.dumps({"iter": iter, "url": f"{metric}/{variant}/{iter}" if url is None else url})
    return Sample(TASK, EventType.IMAGE, metric, variant, iter, key, NOW + iter, document)


async def image_walk(
    store: EmbeddedEventStore,
    start: Place,
    *,
    earlier: bool,
    next_iteration: bool = False,
    at_once: int = neighbours.PAGE,
) -> list[Shown]:
    """What is shown after the start, to the end."""
    found = await neighbours.image_at(store, TASK, start)
    shown = []
    while found:
        (one,) = found.samples
        assert found.min_iteration <= one.iter <= found.max_iteration
        shown.append((one.iter, one.metric, one.variant))
        found = await neighbours.next_image(
            store, TASK, found.place, earlier=earlier, next_iteration=next_iteration, at_once=at_once
        )
    return shown


async def test_every_image_is_shown_once_in_both_directions(store: EmbeddedEventStore) -> None:
    everything = [(n, metric, v) for n in range(4) for metric, v in (("im", "a"), ("im", "b"), ("other", "c"))]
    await store.add(samples(*(image(*one) for one in everything)))
    last = Place(None, "other", "c", current_metric=False)
    assert await image_walk(store, last, earlier=True, at_once=2) == everything[::-1]
    first = Place(0, "im", "a", current_metric=False)
    assert await image_walk(store, first, earlier=False, at_once=2) == everything
    same = await image_walk(store, Place(0, "im", "a"), earlier=False, at_once=2)
    assert same == [one for one in everything if one[1] == "im"]


async def test_the_next_iteration_begins_at_its_nearest_image(store: EmbeddedEventStore) -> None:
    await store.add(samples(*(image(n, "im", v) for n in range(3) for v in "abc")))
    earlier = await image_walk(store, Place(2, "im", "b"), earlier=True, next_iteration=True)
    assert earlier == [(2, "im", "b"), (1, "im", "c"), (0, "im", "c")]
    later = await image_walk(store, Place(0, "im", "b"), earlier=False, next_iteration=True)
    assert later == [(0, "im", "b"), (1, "im", "a"), (2, "im", "a")]


async def test_images_of_one_variant_and_iteration_are_told_apart_by_key(store: EmbeddedEventStore) -> None:
    await store.add(samples(image(1, url="u", key="k"), image(1, url="w", key="l")))
    found = await neighbours.image_at(store, TASK, Place(1, "im", "a"))
    assert found
    before = await neighbours.next_image(store, TASK, found.place, earlier=True, next_iteration=False)
    assert before
    assert (found.place.key, before.place.key) == ("l", "k")


async def test_overwritten_images_are_left_out(store: EmbeddedEventStore) -> None:
    await store.add(
        samples(*(image(n, url=f"file {n % 5}") for n in range(12)), *(image(n, variant="b") for n in (3, 8)))
    )
    found = await neighbours.image_at(store, TASK, Place(None, "im", "a"))
    assert found
    assert (found.place.iter, found.min_iteration, found.max_iteration) == (11, 7, 11)
    walk = await image_walk(store, Place(None, "im", "a"), earlier=True)
    assert walk == [(11, "im", "a"), (10, "im", "a"), (9, "im", "a"), (8, "im", "b"), (8, "im", "a"), (7, "im", "a"), (3, "im", "b")]  # fmt: skip # noqa: E501
    assert await neighbours.image_at(store, TASK, Place(6, "im", "a")) is None


async def test_images_without_a_url_overwrite_nothing(store: EmbeddedEventStore) -> None:
    await store.add(samples(image(1, url=""), image(2, url="")))
    assert len(await image_walk(store, Place(None, "im", "a"), earlier=True)) == 2


async def test_an_iteration_without_samples_means_the_one_before(store: EmbeddedEventStore) -> None:
    await store.add(samples(image(-3), image(10), sample(-3), sample(10)))
    for iteration, expected in ((10, 10), (99, 10), (9, -3), (-3, -3), (-4, None), (2**63 - 1, 10), (-(2**63), None)):
        shown = await neighbours.image_at(store, TASK, Place(iteration, "im", "a"))
        assert (shown and shown.place.iter) == expected
        plots = await neighbours.plots_at(store, TASK, Place(iteration, "p"))
        assert (plots and plots.place.iter) == expected


async def plot_walk(store: EmbeddedEventStore, start: Place, *, earlier: bool, next_iteration: bool) -> list[Shown]:
    """(iteration, metric, variants) of what is shown, to the end."""
    found = await neighbours.plots_at(store, TASK, start)
    shown = []
    while found:
        assert {one.iter for one in found.samples} == {found.place.iter}
        shown.append((found.samples[0].iter, found.place.metric, "".join(one.variant for one in found.samples)))
        found = await neighbours.next_plots(store, TASK, found.place, earlier=earlier, next_iteration=next_iteration)
    return shown


@pytest.mark.parametrize("next_iteration", [False, True])
async def test_plots_are_walked_metric_by_metric(store: EmbeddedEventStore, next_iteration: bool) -> None:
    await store.add(samples(*(sample(n, "p", v) for n in (0, 1, 5) for v in ("", "a", "b")), sample(1, "q", "c")))
    own = [(0, "p", "ab"), (1, "p", "ab"), (5, "p", "ab")]
    for earlier in (False, True):
        start = Place(None if earlier else 0, "p")
        walk = await plot_walk(store, start, earlier=earlier, next_iteration=next_iteration)
        assert walk == (own[::-1] if earlier else own)
    anywhere = Place(0, "p", current_metric=False)
    walk = await plot_walk(store, anywhere, earlier=False, next_iteration=next_iteration)
    assert walk == ([*own] if next_iteration else [*own[:2], (1, "q", "c"), own[2]])
    back = await plot_walk(store, anywhere._replace(iter=None), earlier=True, next_iteration=next_iteration)
    assert back == ([own[2], (1, "q", "c"), own[0]] if next_iteration else [own[2], (1, "q", "c"), own[1], own[0]])


async def test_plots_know_the_range_of_their_metric(store: EmbeddedEventStore) -> None:
    await store.add(samples(sample(-2, variant="a"), sample(4, variant="b"), sample(9, metric="q")))
    found: ShownSamples | None = await neighbours.plots_at(store, TASK, Place(None, "p"))
    assert found
    assert (found.place.iter, found.min_iteration, found.max_iteration) == (4, -2, 4)


async def test_from_nowhere_there_is_no_next(store: EmbeddedEventStore) -> None:
    await store.add(samples(image(1), sample(1)))
    for next_one in (neighbours.next_image, neighbours.next_plots):
        for earlier in (False, True):
            assert await next_one(store, TASK, Place(None, "nope"), earlier=earlier, next_iteration=False) is None

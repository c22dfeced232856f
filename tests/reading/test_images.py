"""Walks over debug images: those whose files were overwritten are left out."""

from __future__ import annotations

from collections import defaultdict

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.model import EventType, Sample
from apiserver.events.queries import SeriesQuery
from apiserver.reading import samples
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.reading import events
from tests.reading.any_events import looked_at
from tests.reading.events import NOW, TASK

pytestmark = pytest.mark.anyio

Image = tuple[int, str, str]
"""(iteration, variant, url)"""


def image(iter: int, variant: str, url: str) -> Sample:
    document = orjson.dumps({"iter": iter, "variant": variant, "url": url})
    return Sample(TASK, EventType.IMAGE, "im", variant, iter, "", NOW, document)


async def walk(
    store: EmbeddedEventStore, iterations: int, seen: samples.Seen | None, *, earlier: bool = True, first: int = 500
) -> tuple[list[tuple[int, list[str]]], samples.Seen | None]:
    series = SeriesQuery(TASK, EventType.IMAGE)
    page = await samples.walk(store, series, iterations=iterations, seen=seen, earlier=earlier, first_images=first)
    return [(iter, [sample.variant for sample in found]) for iter, found in page.iterations], page.seen


async def test_images_whose_files_were_overwritten_are_left_out(store: EmbeddedEventStore) -> None:
    await store.add(
        events.samples(*(image(n, v, f"{n % files}") for n in range(10) for v, files in (("a", 7), ("b", 4))))
    )
    first, seen = await walk(store, 5, None)
    assert first == [(9, ["a", "b"]), (8, ["a", "b"]), (7, ["a", "b"]), (6, ["a", "b"]), (5, ["a"])]
    second, seen = await walk(store, 5, seen)
    assert second == [(4, ["a"]), (3, ["a"])]
    assert await walk(store, 5, seen) == ([], seen)
    assert await walk(store, 5, seen, earlier=False) == (first, (5, 9))
    assert await walk(store, 5, (5, 9), earlier=False) == ([], (5, 9))


async def test_an_image_without_a_file_of_its_own_is_shown(store: EmbeddedEventStore) -> None:
    await store.add(events.samples(image(1, "a", ""), image(2, "a", ""), image(1, "b", "u"), image(2, "a2", "u")))
    shown, _ = await walk(store, 5, None)
    assert shown == [(2, ["a", "a2"]), (1, ["a", "b"])]


@pytest.mark.test
@given(
    known=st.dictionaries(st.tuples(st.integers(-3, 12), st.sampled_from("ab")), st.sampled_from("uvwx"), max_size=25),
    iterations=st.integers(1, 6),
    page=st.integers(1, 7),
)
@looked_at
async def test_walks_show_each_image_that_is_its_own_once(
    store: EmbeddedEventStore, known: dict[tuple[int, str], str], iterations: int, page: int
) -> None:
    await store.delete([TASK])
    if known:
        await store.add(events.samples(*(image(iter, v, url) for (iter, v), url in known.items())))
    newest: dict[tuple[str, str], int] = defaultdict(lambda: -100)
    for (iter, variant), url in known.items():
        newest[variant, url] = max(newest[variant, url], iter)
    own: dict[int, list[str]] = defaultdict(list)
    for (iter, variant), url in sorted(known.items(), reverse=True):
        if newest[variant, url] == iter:
            own[iter].insert(0, variant)
    expected = list(own.items())
    walked: list[tuple[int, list[str]]] = []
    shown, seen = await walk(store, iterations, None, first=page)
    while shown:
        assert len(shown) == min(iterations, len(expected) - len(walked))
        walked += shown
        shown, seen = await walk(store, iterations, seen, first=page)
    assert walked == expected
    back: list[tuple[int, list[str]]] = expected[-iterations:][-(len(expected) % iterations or iterations) :]
    shown, seen = await walk(store, iterations, seen, earlier=False, first=page)
    while shown:
        back = shown + back
        shown, seen = await walk(store, iterations, seen, earlier=False, first=page)
    assert back == expected

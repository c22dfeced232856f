"""The contract of block stores, on each of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apiserver.events.model import EventType, MetricSelection, Owner
from apiserver.events.queries import EVERYWHERE, GREATEST, LEAST, Range, SeriesQuery
from apiserver.stores.events.blocks.blocks import Block, BlockStore, Gone, InBundle, Member, NewBlock, Statement
from apiserver.stores.events.elasticsearch.blocks import ElasticsearchBlocks
from apiserver.stores.events.elasticsearch.bounds import ElasticsearchBounds
from tests.stores.events.blocks import block_stores
from tests.stores.events.blocks.plain_blocks import found_of

pytestmark = pytest.mark.anyio
blocks = block_stores.blocks

OWNER, MODEL, OTHER = Owner("company", "task"), Owner("company", "task", is_model=True), Owner("Another °", "task")
OWNERS = (OWNER, MODEL, OTHER)
SERIES = SeriesQuery(OWNER, EventType.SCALAR)


def fragment(id: str, first: int = 0, last: int = 9, *, owner: Owner = OWNER, variant: str = "x") -> NewBlock:
    """A fragment whose columns name it."""
    return NewBlock(owner, ("a", variant), id, first, last, 2, {"curve": id.encode(), "details": b"\0\xff"})


async def ids(store: BlockStore, series: SeriesQuery = SERIES, range: Range = EVERYWHERE) -> set[str]:
    return {block.id for block in (await store.find(series, range)).blocks}


async def one(store: BlockStore, id: str, series: SeriesQuery = SERIES) -> Block:
    [found] = [block for block in (await store.find(series)).blocks if block.id == id]
    return found


async def test_a_block_is_found_as_it_was_put(blocks: BlockStore) -> None:
    plain, statement = fragment("f", LEAST, GREATEST), Statement(3, 2, 40)
    await blocks.put([plain, replace(fragment("c"), statement=statement, columns={"sums": b""})])
    found = await one(blocks, "f")
    assert found == plain.at(found.version)
    assert (await one(blocks, "c")).statement == statement


async def test_owners_have_their_own_blocks(blocks: BlockStore) -> None:
    await blocks.put([fragment(f"f{number}", owner=owner) for number, owner in enumerate((OWNER, MODEL, OTHER))])
    for number, owner in enumerate((OWNER, MODEL, OTHER)):
        assert await ids(blocks, SeriesQuery(owner, EventType.SCALAR)) == {f"f{number}"}
    await blocks.delete([MODEL])
    assert (await blocks.find(SERIES)).deleted == 0
    assert await ids(blocks, SeriesQuery(Owner("company", "nothing"), EventType.SCALAR)) == set()


async def test_blocks_of_many_owners_are_found_and_fetched_at_once(
    blocks: BlockStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isinstance(blocks, ElasticsearchBlocks):
        monkeypatch.setattr(blocks._cluster, "bounds", ElasticsearchBounds(page=3))
    await blocks.put(
        [fragment(f"{n}{variant}", owner=owner, variant=variant) for n, owner in enumerate(OWNERS) for variant in "xyz"]
    )
    await blocks.delete([MODEL])
    unknown = SeriesQuery(Owner("nothing", "task"), EventType.SCALAR)
    y = (MetricSelection("a", ("y",)),)
    queries = [*(SeriesQuery(owner, EventType.SCALAR, y) for owner in OWNERS), unknown, SERIES]
    found = await blocks.find_of_each(queries)
    assert [{block.id for block in one.blocks} for one in found] == [{"0y"}, {"1y"}, {"2y"}, set(), {"0x", "0y", "0z"}]
    assert [one.deleted > 0 for one in found] == [False, True, False, False, False]
    assert [await blocks.find(series) for series in queries[:4]] == found[:4]
    fetched = await blocks.fetch([(block, ["curve"]) for one in found for block in one.blocks])
    assert [one["curve"].decode() for one in fetched] == [block.id for one in found for block in one.blocks]


async def test_owners_are_found_by_whole_metrics_and_single_series(blocks: BlockStore) -> None:
    await blocks.put([replace(fragment(metric), series=(metric, "x")) for metric in "abc"])
    for selection, expected in (
        ([MetricSelection("a"), MetricSelection("b", ("x",))], {"a", "b"}),
        ([MetricSelection("c", ("x", "y"))], {"c"}),
        ([MetricSelection("d")], set()),
        ([], {"a", "b", "c"}),
    ):
        (found,) = await blocks.find_of_each([replace(SERIES, selection=selection)])
        assert {block.id for block in found.blocks} == expected


async def test_series_and_ranges_are_selected(blocks: BlockStore) -> None:
    await blocks.put([fragment("f", 0, 9), fragment("g", 10, 19), fragment("h", variant="y")])
    for selection, expected in (
        ([MetricSelection("a")], {"f", "g", "h"}),
        ([MetricSelection("a", ("y", "z"))], {"h"}),
        ([MetricSelection("b")], set()),
    ):
        assert await ids(blocks, replace(SERIES, selection=selection)) == expected
    assert await ids(blocks, range=Range(10, 10)) == {"g"}
    assert await ids(blocks, range=Range(9, 9)) == {"f", "h"}
    assert await ids(blocks, range=Range(20, GREATEST)) == set()


def bundle(id: str, *members: Member) -> NewBlock:
    """A bundle whose columns name it."""
    ends, points = (min(one.first for one in members), max(one.last for one in members)), sum(one[3] for one in members)
    return NewBlock(OWNER, ("", ""), id, *ends, points, {"curve": id.encode(), "details": b""}, members=members)


async def test_a_bundle_is_found_as_a_block_for_each_series(blocks: BlockStore) -> None:
    put = bundle("b", Member(("a", "x"), 0, 9, 3), Member(("a", "y"), LEAST, 4, 2), Member(("c", "x"), 5, GREATEST, 1))
    await blocks.put([put, fragment("f")])
    found = [block for block in (await blocks.find(SERIES)).blocks if block.id == "b"]
    assert found == found_of(put, found[0].version)
    assert [(block.series, block.in_bundle) for block in found] == [
        (("a", "x"), InBundle(0, 6, 3)),
        (("a", "y"), InBundle(3, 6, 3)),
        (("c", "x"), InBundle(5, 6, 3)),
    ]
    assert await blocks.fetch([(block, ["curve"]) for block in found]) == [{"curve": b"b"}] * 3
    assert await blocks.crowded(2) == {OWNER: (await one(blocks, "f")).version.place}
    await blocks.remove(OWNER, found[1:])
    await blocks.ended(OWNER)
    assert await ids(blocks) == {"f"}


async def test_series_and_ranges_are_selected_in_bundles(blocks: BlockStore) -> None:
    await blocks.put(
        [bundle("b", Member(("a", "x"), 0, 9, 2), Member(("a", "y"), 5, 20, 2), Member(("c", "x"), 0, 0, 1))]
    )
    for selection, range, expected in (
        ([MetricSelection("a")], EVERYWHERE, [("a", "x"), ("a", "y")]),
        ([MetricSelection("a", ("y",)), MetricSelection("c", ("y",))], EVERYWHERE, [("a", "y")]),
        ([], Range(10, 30), [("a", "y")]),
        ([], Range(-3, 0), [("a", "x"), ("c", "x")]),
        ([MetricSelection("c")], Range(1, 30), []),
    ):
        series = replace(SERIES, selection=selection)
        assert [block.series for block in (await blocks.find(series, range)).blocks] == expected
        if range == EVERYWHERE:
            (of_each,) = await blocks.find_of_each([series])
            assert [block.series for block in of_each.blocks] == expected


async def test_writes_have_places_in_order(blocks: BlockStore) -> None:
    await blocks.put([fragment("f")])
    await blocks.put([fragment("g")])
    await blocks.delete([OWNER])
    await blocks.put([fragment("h")])
    found = await blocks.find(SERIES)
    places = {block.id: block.version.place for block in found.blocks}
    assert places["f"] < places["g"] < found.deleted < places["h"]


async def test_a_block_that_is_put_again_is_there_once_at_the_later_place(blocks: BlockStore) -> None:
    await blocks.put([fragment("f")])
    before = await one(blocks, "f")
    await blocks.put([fragment("g"), fragment("f")])
    assert (await one(blocks, "f")).version.place > before.version.place
    await blocks.remove(OWNER, [before])
    assert await ids(blocks) == {"f", "g"}


async def test_a_block_that_is_put_once_keeps_its_place(blocks: BlockStore) -> None:
    once = replace(fragment("f"), once=True)
    await blocks.put([once, fragment("g")])
    before = await one(blocks, "f")
    await blocks.put([once, replace(fragment("h"), once=True)])
    assert await one(blocks, "f") == before
    assert await ids(blocks) == {"f", "g", "h"}
    await blocks.remove(OWNER, [before])
    await blocks.put([once])
    assert (await one(blocks, "f")).version.place > before.version.place


async def test_a_block_that_is_put_once_is_put_again_behind_a_deletion(blocks: BlockStore) -> None:
    some = [replace(fragment(f"f{number}"), once=True) for number in range(3)]
    await blocks.put(some[:2])
    await blocks.delete([OWNER])
    await blocks.put(some[2:])
    kept = await one(blocks, "f2")
    await blocks.put(some)
    found = await blocks.find(SERIES)
    assert {block.id for block in found.blocks if block.version.place > found.deleted} == {"f0", "f1", "f2"}
    assert await one(blocks, "f2") == kept


async def test_a_block_that_was_put_again_has_to_be_found_again(blocks: BlockStore) -> None:
    await blocks.put([fragment("f")])
    before = await one(blocks, "f")
    await blocks.put([fragment("f")])
    after = await one(blocks, "f")
    with pytest.raises(Gone):
        await blocks.fetch([(before, ["curve"])])
    assert await blocks.fetch([(after, ["curve"])]) == [{"curve": b"f"}]


async def test_columns_are_fetched_by_name(blocks: BlockStore) -> None:
    await blocks.put([fragment("f"), fragment("g")])
    f, g = await one(blocks, "f"), await one(blocks, "g")
    found = await blocks.fetch([(g, ["curve"]), (f, ["details", "curve"])])
    assert found == [{"curve": b"g"}, {"details": b"\0\xff", "curve": b"f"}]


async def test_a_block_that_was_removed_is_gone(blocks: BlockStore) -> None:
    await blocks.put([fragment("f"), fragment("g")])
    f, g = await one(blocks, "f"), await one(blocks, "g")
    await blocks.remove(OWNER, [f])
    await blocks.remove(OWNER, [f])
    await blocks.ended(OWNER)  # so that this server looks for what others did
    assert await ids(blocks) == {"g"}
    with pytest.raises(Gone):
        await blocks.fetch([(g, ["curve"]), (f, ["curve"])])


async def test_blocks_before_a_deletion_are_removed(blocks: BlockStore) -> None:
    await blocks.put([fragment("f"), fragment("m", owner=MODEL), fragment("o", owner=OTHER)])
    places = await blocks.delete([OWNER, MODEL])
    await blocks.put([fragment("g"), replace(fragment("c"), statement=Statement(0, 0, 0))])
    await blocks.remove_before(places)
    assert await ids(blocks) == {"g", "c"}
    assert (await blocks.find(SERIES)).deleted == places[OWNER]
    assert await ids(blocks, replace(SERIES, owner=MODEL)) == set()
    assert await ids(blocks, replace(SERIES, owner=OTHER)) == {"o"}


async def test_all_acknowledged_writes_have_ended(blocks: BlockStore) -> None:
    before = await blocks.ended(OWNER)
    await blocks.put([fragment(f"f{number}") for number in range(20)])
    await blocks.delete([OWNER])
    found, ended = await blocks.find(SERIES), await blocks.ended(OWNER)
    assert before < min(block.version.place for block in found.blocks)
    assert ended >= found.deleted


async def test_blocks_of_a_place_and_behind_it_are_found(blocks: BlockStore) -> None:
    for id in "fgh":
        await blocks.put([fragment(id), fragment(f"{id} of another", owner=MODEL)])
    place = (await one(blocks, "g")).version.place

    async def found(range: Range = EVERYWHERE) -> list[str]:
        return sorted(block.id for block in (await blocks.find(SERIES, range, place=place)).blocks)

    assert await found() == ["g", "h"]
    await blocks.put([fragment("f"), fragment("i", 20, 29)])
    assert await found() == ["f", "g", "h", "i"]
    assert await found(Range(20, 20)) == ["i"]
    await blocks.delete([OWNER])
    for one_place in (place, (await blocks.find(SERIES)).deleted + 1):
        assert (await blocks.find(SERIES, place=one_place)).deleted > place


async def test_columns_of_all_kinds_and_sizes_are_fetched(blocks: BlockStore) -> None:
    sizes = {
        "curve": 100_000,
        "details": 1,
        "sums": 40_000,
        "spans": 0,
        "stats": 3,
        "lines": 0,
        "about": 7,
        "batches": 9,
    }
    columns = {name: bytes(range(256)) * (size // 256) + bytes(size % 256) for name, size in sizes.items()}
    chunk = replace(fragment("c"), count=10_000, columns=columns, statement=Statement(3, 2, 1))
    await blocks.put([chunk, replace(chunk, id="d"), fragment("f")])
    c, d, f = [await one(blocks, id) for id in "cdf"]
    for names in (["curve"], ["sums", "curve"], ["stats"], [*sizes], ["lines", "about"]):
        assert await blocks.fetch([(c, names)]) == [{name: columns[name] for name in names}]
    found = await blocks.fetch([(c, ["sums"]), (d, ["curve"]), (f, ["curve"]), (c, ["stats", "spans"])])
    assert [sorted(one) for one in found] == [["sums"], ["curve"], ["curve"], ["spans", "stats"]]
    assert [one[name] for one, name in zip(found, ("sums", "curve"), strict=False)] == [
        columns["sums"],
        columns["curve"],
    ]
    assert found[2] == {"curve": b"f"}


async def test_owners_with_many_fragments_of_a_series_are_found(blocks: BlockStore) -> None:
    assert await blocks.crowded(2) == {}
    await blocks.put([fragment("f"), fragment("g")])
    await blocks.put([fragment("h", variant="y")])
    await blocks.put([replace(fragment(f"m{number}", variant=str(number)), owner=MODEL) for number in range(3)])
    await blocks.put([replace(fragment(f"c{number}"), owner=MODEL, statement=Statement(0, 0, 0)) for number in "ab"])
    newest = max([(await one(blocks, id)).version.place for id in "fg"])
    assert await blocks.crowded(2) == {OWNER: newest}
    assert await blocks.crowded(3) == {}
    assert {*await blocks.crowded(1)} == {OWNER, MODEL}


async def test_one_holder_has_the_lease(blocks: BlockStore) -> None:
    assert await blocks.lease(OWNER, "one", 100)
    assert await blocks.lease(OWNER, "one", 100)
    assert not await blocks.lease(OWNER, "other", 100)
    assert await blocks.lease(MODEL, "other", 100)
    assert await blocks.lease(OWNER, "one", 0)
    assert await blocks.lease(OWNER, "other", 100)
    assert not await blocks.lease(OWNER, "one", 100)


async def test_many_blocks_are_found_in_pages(blocks: BlockStore, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(blocks, ElasticsearchBlocks):
        monkeypatch.setattr(blocks._cluster, "bounds", ElasticsearchBounds(page=3))
    await blocks.put([fragment(f"f{number}") for number in range(10)])
    await blocks.delete([OWNER])
    found = await blocks.find(SERIES)
    assert {block.id for block in found.blocks} == {f"f{number}" for number in range(10)}
    assert found.deleted == max(block.version.place for block in found.blocks) + 1
    assert len(await blocks.fetch([(block, ["curve"]) for block in found.blocks])) == 10
    await blocks.remove(OWNER, found.blocks)
    await blocks.ended(OWNER)
    assert await ids(blocks) == set()


async def test_a_deletion_before_a_place_leaves_what_lies_behind(blocks: BlockStore) -> None:
    """Also what was put before the note came. A note that says less changes nothing."""
    await blocks.put([fragment("f"), replace(fragment("c"), statement=Statement(0, 0, 0))])
    place = await blocks.ended(OWNER) + 1
    await blocks.put([fragment("g"), fragment("m", owner=MODEL)])
    await blocks.delete_before(OWNER, place)
    for _ in range(2):
        found = await blocks.find(SERIES)
        assert {block.id for block in found.counting} == {"g"}
        assert found.deleted == place < found.noted <= await blocks.ended(OWNER)
        (same,) = await blocks.find_of_each([SERIES])
        assert (same.deleted, same.noted) == (found.deleted, found.noted)
        await blocks.delete_before(OWNER, place - 1)
    await blocks.remove_before({OWNER: place})
    assert await ids(blocks) == {"g"}
    assert (await blocks.find(replace(SERIES, owner=MODEL))).deleted == 0
    await blocks.delete([OWNER])
    found = await blocks.find(SERIES)
    assert (found.counting, found.deleted) == ([], found.noted)
    await blocks.delete_before(OWNER, place)
    assert (await blocks.find(SERIES)).deleted == found.deleted
    await blocks.delete_before(OWNER, place := found.deleted + 1)
    assert (await blocks.find(SERIES)).deleted == place

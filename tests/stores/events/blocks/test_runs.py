"""Which runs become chunks: the examples of `runs.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from apiserver.events.model import Owner
from apiserver.stores.events.blocks.blocks import Block, Found, Member, Statement, Version, in_bundle
from apiserver.stores.events.blocks.bounds import BOUNDS
from apiserver.stores.events.blocks.makers import PointsMaker
from apiserver.stores.events.blocks.runs import runs_to_make
from apiserver.stores.events.blocks.scalars import ColumnarScalars
from tests.contract.event_stores import OWNER
from tests.stores.events.blocks.plain_blocks import PlainBlocks

MAKER = PointsMaker(ColumnarScalars(PlainBlocks(), bounds=replace(BOUNDS, sealed_points=1000)).loader)


def a_chunk_and_fragments(metric: str, *sizes: int) -> list[Block]:
    """Blocks of a series, one behind the other: a chunk of the first size, and fragments of the others."""
    firsts = [sum(sizes[:number]) for number in range(len(sizes))]
    chunk = Statement(0, 0, 0)
    return [
        Block(OWNER, (metric, ""), f"{metric} {n}", Version(n, 1), first, first + size - 1, size, None if n else chunk)
        for n, (first, size) in enumerate(zip(firsts, sizes, strict=True))
    ]


def made_of(blocks: Sequence[Block], fewest: int) -> dict[str, list[list[str]]]:
    """The ids of the blocks in each run that becomes chunks, by metric."""
    made: dict[str, list[list[str]]] = {}
    for run in runs_to_make(MAKER, Found([*blocks], 0, 0), fewest):
        made.setdefault(run.series[0], []).append([part.block.id for part in run.parts])
    return made


def test_a_small_chunk_is_made_anew_with_many_fragments_behind_it() -> None:
    loss, accuracy = a_chunk_and_fragments("loss", 40, 10, 15, 10), a_chunk_and_fragments("accuracy", 90, 10, 10)
    assert made_of([*loss, *accuracy], 3) == {"loss": [["loss 0", "loss 1", "loss 2", "loss 3"]]}
    assert made_of([*loss, *accuracy], 2)["accuracy"] == [["accuracy 1", "accuracy 2"]]


def test_a_series_in_many_bundles_takes_the_others_in_them_along() -> None:
    def bundle(owner: Owner, at: int, other: str) -> list[Block]:
        return in_bundle(owner, f"{at}", Version(at, 1), [Member((name, ""), at, at, 1) for name in ("loss", other)])

    alone = [Block(OWNER, ("third", ""), "3", Version(3, 1), 3, 3, 1)]
    blocks = [*bundle(OWNER, 1, "first"), *bundle(OWNER, 2, "second"), *alone]
    assert made_of(blocks, 2) == {"loss": [["1", "2"]], "first": [["1"]], "second": [["2"]]}
    assert made_of(blocks, 3) == {}

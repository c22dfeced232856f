"""Chooses what compaction makes chunks of: runs of neighbouring stretches of a series.

A run is *settled* if it may stay as it is, as a chunk alone may; else it is *loose*. First, neighbours join:

- loose runs, as long as one chunk of both can be made at once;
- a small chunk and a loose run, if the chunk has up to twice as many points. So a point is written anew about as often
  as the number of points can be halved, and few small chunks are left.

Then the loose runs of a series become chunks if they have many blocks. For example, where three are many:

    loss       chunk of 40, fragments of 10, 15, 10    fragments of 10 and 15 join, then the chunk, as 40 <= 2 * 25,
                                                       then the last one: the run of all four blocks becomes a chunk
    accuracy   chunk of 90, fragments of 10, 10        the run of two fragments stays, and so does the chunk

A bundle is removed only when all its series are compacted. Until then, readers of a series in it find the bundle, even
if chunks have all its points of this series. So if a series is in many bundles that would stay, all series in these
bundles are compacted. For example, where two are many:

    two bundles     loss at 1, first at 1;  loss at 2, second at 2
    three chunks    loss at 1 to 2; first at 1; second at 2
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from itertools import chain

from apiserver.stores.events.blocks.blocks import Found
from apiserver.stores.events.blocks.makers import Maker, Run
from apiserver.stores.events.blocks.stretches import Stretch, stretches
from apiserver.stores.events.codec.names import Name


def runs_to_make(maker: Maker, found: Found, fewest: int) -> list[Run]:
    """The runs that should become chunks, if `fewest` blocks are many."""
    loose = {series: _loose_runs(maker, series, of_series) for series, of_series in stretches(found).items()}
    ids = {series: [part.block.id for run in runs for part in run.parts] for series, runs in loose.items()}
    in_many_blocks = {series for series in ids if len(ids[series]) >= fewest}
    ids_that_stay = {id for series in ids.keys() - in_many_blocks for id in ids[series]}
    compacted = in_many_blocks | _in_many_bundles(found, ids_that_stay, fewest)
    return [run for series, runs in loose.items() if series in compacted for run in runs]


def _loose_runs(maker: Maker, series: Name, of_series: Sequence[Stretch]) -> list[Run]:
    """The runs of the stretches of a series, after neighbours have joined, without those that are settled."""
    runs: list[Run] = []
    for stretch in chain.from_iterable(map(maker.pieces, of_series)):
        run = Run(series, [stretch], maker.is_settled(stretch), maker.size(stretch))
        while runs and _should_join(maker, runs[-1], run):
            run = runs.pop().joined(run)
        runs.append(run)
    return [run for run in runs if not run.is_settled]


def _should_join(maker: Maker, run: Run, next: Run) -> bool:
    """Whether a run and the next one should become chunks together."""
    if run.is_settled and next.is_settled:
        return False
    if not run.is_settled and not next.is_settled:
        return run.size + next.size <= maker.at_a_time
    chunk, loose = (run, next) if run.is_settled else (next, run)
    return chunk.size < maker.sealed and chunk.size <= 2 * loose.size


def _in_many_bundles(found: Found, ids: Set[str], fewest: int) -> set[Name]:
    """The series in bundles that have to go: a bundle goes if one of its series is in `fewest` bundles of these ids."""
    in_bundles = [block for block in found.blocks if block.in_bundle is not None and block.id in ids]
    bundles = Counter(block.series for block in in_bundles)
    ids_that_go = {block.id for block in in_bundles if bundles[block.series] >= fewest}
    return {block.series for block in in_bundles if block.id in ids_that_go}

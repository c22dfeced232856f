"""Sizes so small that a few events fill tails, chunks and blocks."""

from __future__ import annotations

import pytest

from apiserver.stores.events.columns import bucketing, chunks, pco, pieces, stats
from apiserver.stores.events.embedded import (
    buckets,
    decoded,
    log_merge,
    log_numbers,
    logs,
    scalar_merge,
    sealing,
    smoothed,
    tail,
    walks,
    whole,
)


def make_small(patch: pytest.MonkeyPatch) -> None:
    """Until `patch` is undone."""
    patch.setattr(scalar_merge, "FOLD_AT", 6)
    patch.setattr(scalar_merge, "SERIES_AT_ONCE", 2)
    patch.setattr(tail, "MOST_RUNS", 2)
    patch.setattr(tail, "POINTS_A_PAGE", 7)
    patch.setattr(chunks, "LARGEST", 8)
    patch.setattr(chunks, "LARGEST_SEALED", 30)
    patch.setattr(sealing, "POINTS_A_STEP", 50)
    patch.setattr(sealing, "_CHUNKS_AT_A_TIME", 6)
    patch.setattr(chunks, "POINTS_AT_A_TIME", 20)
    patch.setattr(whole, "POINTS_AT_A_TIME", 20)
    patch.setattr(whole, "LINES_AT_A_TIME", 1000)
    patch.setattr(pco, "PAGE", 8)
    patch.setattr(walks, "_SOME", 3)
    patch.setattr(stats, "LONG", 4)
    patch.setattr(pieces, "POINTS_A_BLOCK", 2)
    patch.setattr(pieces, "POINTS_A_SEALED_BLOCK", 5)
    patch.setattr(bucketing, "MOST_WIDENING", 0.5)
    patch.setattr(buckets, "CHUNKS_OF_POINTS", 2)
    patch.setattr(buckets, "CHUNKS_OF_BLOCKS", 3)
    patch.setattr(decoded, "LEAST_POINTS", 10)
    patch.setattr(decoded, "_CHUNKS", 2)
    patch.setattr(smoothed, "POINTS", 10)
    patch.setattr(bucketing, "SHORT", 4)
    patch.setattr(log_merge, "LARGEST", 5)
    patch.setattr(logs, "AT_ONCE", 7)
    patch.setattr(log_numbers, "MOST_BLOCKS", 12)
    patch.setattr(log_numbers, "FEWEST", 6)

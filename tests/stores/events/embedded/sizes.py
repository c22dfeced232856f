"""Sizes so small that a few events fill tails, chunks and blocks."""

from __future__ import annotations

from apiserver.stores.events.embedded.bounds import EmbeddedBounds

SMALL = EmbeddedBounds(
    fold_points=6,
    series_at_once=2,
    tail_runs=2,
    tail_page_points=7,
    block_lines=5,
    chunk_points=8,
    sealed_chunk_points=30,
    summed_points=2,
    sealed_summed_points=5,
    page_numbers=8,
    long_group=4,
    seal_points=50,
    seal_chunks=6,
    points_at_a_time=20,
    line_bytes_at_a_time=1000,
    walk_points=3,
    hot_lines=7,
    searched_lines=7,
    chunks_of_points=2,
    chunks_of_blocks=3,
    most_widening=0.5,
    short_series=4,
    smoothed_points=10,
    kept_curve_points=10,
    block_ends=12,
    least_block_ends=6,
)

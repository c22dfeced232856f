"""Bounds of the engine of columns: sizes of blocks, how much is read at once, and when owners are compacted."""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.stores.events.codec import bucketing, chunks


@dataclass(frozen=True, slots=True)
class ColumnarBounds:
    """What the engine of one server is given. Times are in seconds."""

    # --- blocks of points ----------------------------------------------------------------------------

    block_points: int = chunks.LARGEST_SEALED
    """The most points of a block."""
    sealed_points: int = chunks.LARGEST_SEALED // 2
    """A chunk of so many points is encoded in few bytes: it will hardly be made anew."""
    short_points: int = 256
    """Points of a series that are put into a bundle, at most."""
    bundle_points: int = 4096
    bundle_series: int = 64
    copied_points: int = chunks.LARGEST_SEALED
    """Fewer points of a copy become fragments: asking what there is would take longer than all else."""

    # --- blocks of lines -----------------------------------------------------------------------------

    chunk_bytes: int = 2**20
    """Bytes of memory that the lines of a chunk take, unless it is a single line."""
    fragment_bytes: int = 4 * 2**20
    """The same of a fragment."""
    sealed_bytes: int = 2**19
    """A chunk of so many bytes is not made anew with its neighbours."""
    bytes_at_a_time: int = 32 * 2**20
    """Bytes of memory of lines that become chunks at once."""

    # --- reading -------------------------------------------------------------------------------------

    points_at_a_time: int = chunks.POINTS_AT_A_TIME
    """Points that are held in memory at a time, however many there are."""
    fetched_points: int = 2 * chunks.POINTS_AT_A_TIME
    """The columns of about so many are fetched together. Each request costs as much as decoding 100,000 points."""
    long_block: int = 1024
    """Points of a block from which on they are summed up as they are decoded: shorter ones take less time together."""
    most_widening: float = bucketing.MOST_WIDENING
    """How much wider buckets may become, as a part of the width asked for."""
    searched_lines: int = 10_000
    """Lines after which a search pauses, so that it takes some milliseconds. It also pauses after PAGE_BYTES."""
    many_blocks: int = 20
    """Blocks that are many: asking the store for fewer takes no longer than asking it what has ended."""
    remembered_blocks: int = 25_000
    """Blocks that are remembered, of all queries together: about a kilobyte each, with what is made of it. A query
    counts as one block, each name in it as another one, and so do 128 characters of its names."""

    # --- compaction ----------------------------------------------------------------------------------

    fewest: int = 16
    """A series is compacted if it has so many blocks that are not chunks alone in their stretch."""
    lease: float = 30
    """How long a server keeps others from doing the same work, unless it renews that."""
    lease_pause: float = 0.1
    """Between two questions for a lease."""
    lease_questions: int = 100
    """How often somebody asks who needs a lease."""
    quiet: float = 60
    """After so long without a write, an owner is compacted if it was written to twice."""
    few: int = 2
    """The fewest blocks then."""
    look: float = 60
    """Between two looks for owners that others left."""
    left: int = 32
    """How many fragments of a series these have."""
    sweep: float = 600
    """Between two looks for owners with a few."""
    rest: float = 3
    """How many times as long as it worked the compactor rests."""
    least_rest: float = 1
    """How long it rests at least if no owner waits."""
    hurry: int = 160
    """Writes to an owner after which the compactor does not rest."""
    most: int = 320
    """Writes to an owner after which further ones wait."""
    patience: float = 10
    """How long a write waits at most."""
    again: int = 2
    """After so long, its client may try again."""
    pause: float = 0.1
    """How long the compactor waits until it tries again what another server does just now."""


BOUNDS = ColumnarBounds()
"""Those of a server."""

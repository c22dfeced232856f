"""Bounds of the embedded event store: sizes of what it writes and reads at once, what it remembers, how it waits.

Only `merge_points` and the like of `EmbeddedEventStore` depend on settings. These here do not, and a store in which a
few events fill every chunk, block and page is made by other ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apiserver.stores.events import usage
from apiserver.stores.events.codec import bucketing, chunks, pco, pieces, stats


@dataclass(frozen=True, slots=True)
class EmbeddedBounds:
    """What one store is given. Times are in seconds."""

    # --- merging -------------------------------------------------------------------------------------

    retry_seconds: Sequence[float] = (0.5, 1, 2, 5, 10)
    """Until merging is tried again, after one failure, after two, and so on."""
    work_seconds: float = 0.005
    """Work after which a merge rests. Requests wait for less than twice as long."""
    rest: float = 3
    """How many times as long as it worked a merge rests at most."""
    series_at_once: int = 256
    """So many series are merged together, and those of the same owner, which share pages."""
    fold_points: int = 1024
    """Points of a tail that become chunks."""
    tail_runs: int = 16
    """If a series has so many runs, its next merge makes one of them."""
    tail_page_points: int = 4096
    block_lines: int = 500
    """Log lines of a block."""
    block_bytes: int = 4 * 2**20
    """Bytes of the lines of a block, unless it is a single line, as a block is read as a whole."""

    # --- chunks --------------------------------------------------------------------------------------

    chunk_points: int = chunks.LARGEST
    sealed_chunk_points: int = chunks.LARGEST_SEALED
    summed_points: int = pieces.POINTS_A_BLOCK
    """Points that a block of a chunk sums up."""
    sealed_summed_points: int = pieces.POINTS_A_SEALED_BLOCK
    """The same in sealed chunks."""
    page_numbers: int = pco.PAGE
    """Numbers of a page of a sealed column."""
    long_group: int = stats.LONG
    """Points of a group from which on its extremes are searched for apart from those of other groups."""
    seal_points: int = 2**17
    """Points that are sealed in one transaction, in about 20 ms. Deletes and merges wait for so long."""
    seal_chunks: int = 32
    """Chunks of a series that are looked at together. A sealed chunk seldom takes the place of more."""

    # --- the file ------------------------------------------------------------------------------------

    log_bytes: int = 64 * 2**20
    """Bytes of the write-ahead log above which it is truncated."""
    readers_leave_seconds: float = 1
    """How long truncating the log waits for readers to end."""
    long_log_seconds: float = 5
    """How long an idle thread waits until it tries again to shorten the log, which a reader kept long."""
    free_pages: int = 2048
    """Pages that the file keeps for new events."""
    shrink_pages: int = 512
    """Pages that are given back at a time."""

    # --- reading -------------------------------------------------------------------------------------

    points_at_a_time: int = chunks.POINTS_AT_A_TIME
    """Points that are held in memory at a time, however many there are."""
    line_bytes_at_a_time: int = 16 * 2**20
    """Bytes of memory that the log lines of a part of a copy take, about."""
    owners_a_query: int = 500
    """Owners that one query looks up. SQLite takes 32,766 parameters, and each owner is four."""
    walk_points: int = 1024
    """Points of a chunk that a walk reads at least: of fewer, finding them takes longer than decoding them."""
    hot_lines: int = 10_000
    """Hot lines that become columns at once."""
    searched_lines: int = 10_000
    """Lines after which a search pauses."""
    many_series: int = 500
    """The samples of more series than these are read by one statement."""
    series_bytes: int = 900
    """Bytes of memory that a series takes, about, without its points, when those of many owners are read."""
    usage_seconds: float = usage.LONGEST
    """How long telling how much is kept of a company may take."""
    usage_steps: int = 100_000
    """Steps of SQLite's virtual machine between two looks at the clock meanwhile."""

    # --- buckets -------------------------------------------------------------------------------------

    chunks_of_points: int = 32
    """Chunks of a series whose points are summed up at once: as many as fit into a processor's cache."""
    chunks_of_blocks: int = 64
    """Chunks whose blocks are summed up, or decoded to be kept, at once."""
    most_widening: float = bucketing.MOST_WIDENING
    """How much wider buckets may become, as a part of the width asked for."""
    short_series: int = bucketing.SHORT
    """Pieces up to which series are bucketed together."""
    smoothed_points: int = 2**17
    """Points that are smoothed at a time: as many as fit into a processor's cache."""
    smoothed_blocks: int = 2**18
    """A smoothed curve has about so many blocks at most. If it has more points, blocks are larger."""

    # --- what is remembered --------------------------------------------------------------------------

    curve_bytes: int = 64 * 2**20
    """Bytes that what is known of all curves may take. The one that was not asked for longest goes first."""
    bytes_of_a_curve: int = 16 * 2**20
    """Bytes that one curve may take. Of a smoothed one, stretches beyond are not kept; of others, nothing is."""
    kept_curve_points: int = 2**17
    """Curves of fewer points are not kept: to read their blocks takes little time."""
    block_ends: int = 500_000
    """Ends of blocks of logs. Each takes 32 bytes."""
    least_block_ends: int = 500
    """A log counts as so many at least."""
    changed_series: int = 100_000
    """Series of merged segments of which changes are told (see `Summary.size`)."""
    deletions: int = 10_000
    """Owners whose deletions are remembered by name."""
    owners_at_once: int = 100
    """Owners whose changes are looked for while others wait for the lock."""


BOUNDS = EmbeddedBounds()
"""Those of a server."""

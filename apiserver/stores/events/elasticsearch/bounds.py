"""Bounds of the event store on Elasticsearch: how large requests and answers are, and how long who waits for what.

A `Cluster` has them, and what sends requests takes them from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apiserver.stores.events.blocks import bounds as columnar_bounds
from apiserver.stores.events.blocks.bounds import ColumnarBounds
from apiserver.stores.events.sizes import PAGE_BYTES


@dataclass(frozen=True, slots=True)
class ElasticsearchBounds:
    """What the store of one server is given. Times are in seconds."""

    columnar: ColumnarBounds = columnar_bounds.BOUNDS

    # --- nodes ---------------------------------------------------------------------------------------

    largest_answer: int = 64 * 2**20
    """Bytes of the largest answer that is read. An event of 16 MB takes up to 32 MB."""
    timeout: float = 30
    """How long an answer may take."""
    sign: float = 3
    """How long a sign of life may take."""
    no_sign: float = 1
    """After there was none, nobody asks for another one for so long."""
    joining: float = 10
    """How long a node that was left out needs to notice that, and to join the others again."""

    # --- what searches see ---------------------------------------------------------------------------

    refresh_pauses: Sequence[float] = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
    """Between attempts to refresh all copies of shards, one of which may be at a node that has just gone."""
    shared: float = 1
    """For so long is answered again what a search found."""

    # --- requests ------------------------------------------------------------------------------------

    searches_at_once: int = 200
    """Searches of one request."""
    request_characters: int = 2**20 - 2**12
    """Characters of a request that writes. Larger requests are no faster if several are under way."""
    send_pauses: Sequence[float] = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
    """Between attempts to write while nodes are overloaded."""
    page: int = 5000
    """Blocks of one answer, and blocks that one request removes."""

    # --- samples -------------------------------------------------------------------------------------

    large_sample: int = 64 * 2**10
    """A sample is large if its text in a node's answer has so many bytes."""
    large_together: int = PAGE_BYTES
    """Bytes of large events in one answer, unless there is only one. A page needs no more."""
    samples_an_answer: int = 256
    """As many as fit into an answer of 16 MB if they are not large."""
    samples_a_search: int = 20_000
    """Samples, or iterations to be answered, of a search. A series with more has a search of its own."""
    iterations_an_answer: int = 100_000
    """Reading a larger answer would keep all other callers waiting."""

    # --- deletions -----------------------------------------------------------------------------------

    noted_every: float = 15
    """A deletion that goes on is noted again and again."""
    ended_after: float = 60
    """A deletion whose note was seen unchanged for so long has ended, or its server has."""
    longest_deletion: float = 3600
    """A deletion that began longer ago has ended, if this server sees its note for the first time."""


BOUNDS = ElasticsearchBounds()
"""Those of a server."""

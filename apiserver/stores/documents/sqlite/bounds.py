"""Bounds of the document store on SQLite: how long reads take, how pages are found, and which side tables there are."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SqliteBounds:
    """What one store is given."""

    longest_read: float = 30.0
    """Seconds that a read may take. Many conditions without an index could take a minute, and no client waits so long.
    """

    # --- pages ---------------------------------------------------------------------------------------

    first_look: int = 200
    """Documents that are tested first."""
    furthest: int = 3000
    """Documents that a walk may test. A search is faster than a longer walk."""
    sparse: int = 20
    """If at most one of so many documents meets the condition, sorting all that do takes little time."""
    few: int = 1000
    """The most rows that a statement lists by their numbers."""
    long: int = 1000
    """A grouped value of more characters counts for the answer."""

    # --- side tables ---------------------------------------------------------------------------------

    many: int = 2000
    """A side table is made if the JSON of more documents would have to be read without it."""
    sides: int = 16
    """Side tables of a collection."""
    side_characters: int = 64 * 2**20
    """Characters of all texts in a side table. A larger one is not made."""
    documents_at_once: int = 500
    """Documents that are put into a side table at a time. It takes some milliseconds."""
    bytes_at_once: int = 4 * 2**20
    """Bytes of these documents, and of one more."""


BOUNDS = SqliteBounds()
"""Those of a server."""

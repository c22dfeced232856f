"""Limits of retention: how much is read and deleted at once, and how often a server looks whether it is due."""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.stores.events.codec.chunks import POINTS_AT_A_TIME


@dataclass(frozen=True, slots=True)
class RetentionBounds:
    """Limits of runs. Times are in seconds."""

    tasks: int = 500
    """Tasks that are read at once."""
    series: int = 500
    """Series of images and the like that are read or deleted at once."""
    points: int = POINTS_AT_A_TIME
    """Points that are read at once to thin series."""
    urls: int = 2000
    """URLs in a query: an engine takes a command of some megabytes."""
    note_characters: int = 2**20
    """Characters of the URLs in a document: an engine takes some megabytes."""
    turn_seconds: float = 600
    """After so long, a turn ends."""
    again_seconds: float = 60
    """Its holder moves this end on again and again, after so long."""
    look_seconds: float = 30
    """Between two looks at the clock."""
    hour_seconds: float = 3600
    """Of an hour in the setting `retention_every`. A test may have shorter ones."""

"""Limits of backups: how large their parts are, and how often a server looks whether one is due."""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.operating.backup.manifest import LARGEST
from apiserver.operating.backup.pieces import PIECE_BYTES


@dataclass(frozen=True, slots=True)
class BackupBounds:
    """Limits of backups. Times are in seconds."""

    piece_bytes: int = PIECE_BYTES
    """The bytes with which a piece is full."""
    manifest_bytes: int = LARGEST
    """The most that a manifest may have."""
    look_seconds: float = 30
    """Between two looks at the clock."""
    ending_seconds: float = 10
    """How long a server that stops waits for the process that it has killed."""

"""Ids of documents that are stored for a limited time. An id begins with the time, so a newer id is a greater text.

Code that adds such a document first deletes those with ids below `oldest_id`.
"""

from __future__ import annotations

import time
from uuid import uuid4


def new_id() -> str:
    """An id that begins with the present time, and that nobody can guess."""
    return f"{_prefix(time.time())}{uuid4().hex}"


def oldest_id(kept_seconds: float) -> str:
    """The least id that a document made in the last `kept_seconds` can have."""
    return _prefix(time.time() - kept_seconds)


def _prefix(seconds: float) -> str:
    return f"{int(seconds * 1000):012x}"

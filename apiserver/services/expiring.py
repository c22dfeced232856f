"""Ids of documents that are kept for a while only: they begin with the time, so they grow, as texts are compared.

Whoever adds such a document deletes those below `oldest_id` first.
"""

from __future__ import annotations

import time
from uuid import uuid4


def new_id() -> str:
    """An id of now, which nobody can guess."""
    return f"{_began(time.time())}{uuid4().hex}"


def oldest_id(kept_seconds: float) -> str:
    """What no id is less than that was made in the last so many seconds."""
    return _began(time.time() - kept_seconds)


def _began(seconds: float) -> str:
    return f"{int(seconds * 1000):012x}"

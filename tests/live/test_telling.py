"""Events as they are kept."""

from __future__ import annotations

import tracemalloc

from apiserver.live.telling import Event


def test_a_kept_event_takes_little_more_than_its_bytes() -> None:
    tracemalloc.start()
    try:
        kept = [Event.of("log", {"task": "8f1c", "count": number}) for number in range(100)]
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 300 * len(kept)

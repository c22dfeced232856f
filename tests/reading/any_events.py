"""Any events, as request lines, for property tests; values are whole numbers, so that sums are exact in any order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from apiserver.events.ingest import ingest_lines
from apiserver.events.model import SINGLE_VALUE_ITERATION
from apiserver.stores.events.base import EventStore
from tests.chance import examples
from tests.reading.events import NOW, TASK

looked_at = examples(15)

Line = dict[str, Any]
Identity = tuple[str, int, str, str, str]
"""(type, iteration, metric, variant, key)"""

METRICS = ("a", "b")
_TYPES = ("training_stats_scalar", "training_stats_vector", "training_debug_image", "plot")

identities = st.builds(
    lambda type, iter, metric, variant, key: (type, iter, metric, variant, key if "image" in type else ""),
    st.sampled_from(_TYPES + _TYPES[:1] * 3),
    st.one_of(*[st.integers(-3, 12)] * 4, st.sampled_from([SINGLE_VALUE_ITERATION, -(2**63), 2**63 - 1])),
    st.sampled_from(METRICS),
    st.sampled_from("xy"),
    st.sampled_from("kl"),
)
log_lines = st.builds(
    lambda time, msg, worker: {"type": "log", "task": TASK.id, "timestamp": time, "msg": msg, "worker": worker},
    st.integers(0, 6),
    st.sampled_from(["one", "two", "three"]),
    st.sampled_from("vw"),
)


def event(identity: Identity, value: int = 0) -> Line:
    """An event of this identity; its timestamp follows from it."""
    type, iter, metric, variant, key = identity
    head: Line = {"type": type, "task": TASK.id, "iter": iter, "metric": metric, "variant": variant}
    head["timestamp"] = iter * 7 % 5
    match type:
        case "training_stats_scalar":
            return {**head, "value": value}
        case "training_stats_vector":
            return {**head, "values": [value]}
        case "training_debug_image":
            return {**head, "key": key, "url": f"http://files/{identity}"}
    return {**head, "plot_str": str(value)}


@st.composite
def events(draw: st.DrawFn, *, most: int = 40) -> list[Line]:
    """Events and log lines; no two events are of one identity."""
    unique = draw(st.lists(identities, unique=True, max_size=most))
    lines: list[Line] = [event(identity, draw(st.integers(-9, 9))) for identity in unique]
    return draw(st.permutations(lines + draw(st.lists(log_lines, max_size=most // 2))))


def body_of(lines: Sequence[Line]) -> bytes:
    """The lines as a request has them."""
    return "\n".join(map(json.dumps, lines)).encode()


async def add(store: EventStore, body: bytes) -> None:
    """As a request does."""
    ingest = ingest_lines(body, company=TASK.company, received=NOW, worker="w")
    assert not ingest.rejects.total
    await store.add(ingest.batch)

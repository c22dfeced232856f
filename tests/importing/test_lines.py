"""Which log lines the target has not, whatever it has already."""

from __future__ import annotations

import asyncio
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.model import EventBatch, LogColumns
from apiserver.importing.lines import LinesThere
from apiserver.stores.events import base
from tests.contract.event_stores import OWNER
from tests.contract.plain_event_store import PlainEventStore

Line = tuple[int, str]
lines = st.lists(st.tuples(st.integers(0, 6), st.sampled_from("ab")), max_size=25)


def columns(found: list[Line]) -> LogColumns:
    count = len(found)
    return LogColumns(
        OWNER,
        np.array([timestamp for timestamp, _ in found], np.int64),
        ["info"] * count,
        ["w"] * count,
        [message for _, message in found],
        [None] * count,
        [""] * count,
        [""] * count,
        repr(found).encode(),
    )


@pytest.mark.test
@given(there=lines, source=lines, page=st.integers(1, 5), size=st.sampled_from([2 * base.EVENT_BYTES, base.PAGE_BYTES]))
def test_in_the_end_there_are_as_many_of_each_line_as_in_the_source(
    there: list[Line], source: list[Line], page: int, size: int
) -> None:
    async def check() -> None:
        target = PlainEventStore()
        if there:
            await target.add(EventBatch(1, logs=[columns(there)]))
        missing = LinesThere(target, OWNER, lambda line: None, page=3)
        ordered = sorted(source, key=lambda line: line[0])
        fresh: list[Line] = []
        for start in range(0, len(ordered), page):
            found = await missing.missing(columns(ordered[start : start + page]))
            if found is not None:
                fresh += zip(found.timestamps.tolist(), found.messages, strict=True)
        assert Counter(there) + Counter(fresh) == Counter(there) | Counter(source)
        assert fresh == sorted(fresh, key=lambda line: line[0])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "PAGE_BYTES", size)  # the target's pages end early when lines are large
        asyncio.run(check())

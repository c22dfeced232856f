"""Which log lines the target has not, whatever it has already."""

from __future__ import annotations

import asyncio
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.model import EventBatch, LogColumns
from apiserver.stores.events.sizes import PAGE_BYTES
from apiserver.transfer.importing.clearml.lines import LinesThere
from tests.contract.event_stores import OWNER
from tests.contract.plain_event_store import PlainEventStore

Line = tuple[int, str]
#: Long messages by their first character. Two of them fill a page of the target, however many lines are asked for.
LONG = {name: name * (PAGE_BYTES // 2) for name in "ab"}
lines = st.lists(st.tuples(st.integers(0, 6), st.sampled_from("ab")), max_size=25)


def columns(found: list[Line], long: bool) -> LogColumns:
    count = len(found)
    return LogColumns(
        OWNER,
        np.array([timestamp for timestamp, _ in found], np.int64),
        ["info"] * count,
        ["w"] * count,
        [LONG[message] if long else message for _, message in found],
        [None] * count,
        [""] * count,
        [""] * count,
        repr(found).encode(),
    )


@pytest.mark.test
@given(there=lines, source=lines, page=st.integers(1, 5), long=st.booleans())
def test_in_the_end_there_are_as_many_of_each_line_as_in_the_source(
    there: list[Line], source: list[Line], page: int, long: bool
) -> None:
    async def check() -> None:
        target = PlainEventStore()
        if there:
            await target.add(EventBatch(1, logs=[columns(there, long)]))
        missing = LinesThere(target, OWNER, lambda line: None, page=3)
        ordered = sorted(source, key=lambda line: line[0])
        fresh: list[Line] = []
        for start in range(0, len(ordered), page):
            found = await missing.missing(columns(ordered[start : start + page], long))
            if found is not None:
                fresh += zip(found.timestamps.tolist(), [text[0] for text in found.messages], strict=True)
        assert Counter(there) + Counter(fresh) == Counter(there) | Counter(source)
        assert fresh == sorted(fresh, key=lambda line: line[0])

    asyncio.run(check())

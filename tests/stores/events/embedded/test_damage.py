"""A journal whose end is torn or corrupted: every whole record is there, the store starts, says so and goes on.

`EVENTS_EXAMPLES=200 pytest tests/stores/events/embedded/test_damage.py` looks longer.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.stores.events.embedded import journal
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.chance import examples
from tests.stores.events.embedded.adding import numbered
from tests.stores.events.embedded.merging import copy_as_of_a_crash
from tests.stores.events.embedded.test_kill import batches_in

BATCHES = 4


def unmerged(folder: Path) -> EmbeddedEventStore:
    return EmbeddedEventStore(folder, merge_points=10**9, merge_seconds=10**6)


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder `events` of a store that was killed, and where each batch ends in its journal (`ends`)."""
    folder = tmp_path_factory.mktemp("crashed")

    async def fill() -> None:
        store = unmerged(folder / "running")
        await store.open()
        ends = []
        for n in range(BATCHES):
            await store.add(numbered(n))
            ((_, path),) = journal.segments(folder / "running")
            ends.append(path.stat().st_size)
        (folder / "ends").write_text(" ".join(map(str, ends)))
        copy_as_of_a_crash(store, folder / "running", folder / "events")
        await store.close()

    asyncio.run(fill())
    return folder


@pytest.mark.test
@examples(25)
@given(st.data())
def test_a_damaged_end_costs_no_whole_record(crashed: Path, data: st.DataObject) -> None:
    ends = [int(end) for end in (crashed / "ends").read_text().split()]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "events"
        shutil.copytree(crashed / "events", folder)
        ((_, path),) = journal.segments(folder)
        content = bytearray(path.read_bytes())
        if data.draw(st.booleans(), label="cut"):
            at = data.draw(st.integers(len(journal.MAGIC), len(content) - 1), label="at")
            del content[at:]
            content += data.draw(st.binary(max_size=100), label="rubbish")
        else:
            at = data.draw(st.integers(ends[-2], len(content) - 1), label="at")
            content[at] ^= data.draw(st.integers(1, 255), label="flip")
        path.write_bytes(content)
        whole = sum(end <= at for end in ends)
        with patch.object(journal.logger, "warning") as warning:
            asyncio.run(go_on(folder, whole))
        torn = len(content) > ([len(journal.MAGIC), *ends])[whole]
        assert warning.called == torn


async def go_on(folder: Path, whole: int) -> None:
    """The whole batches are there; those that are sent again, and one more, are there once."""
    store = unmerged(folder)
    await store.open()
    assert await batches_in(store) == whole
    for _ in range(2):
        for n in range(BATCHES + 1):
            await store.add(numbered(n))
        assert await batches_in(store) == BATCHES + 1
        await store.close()
        await store.open()
    await store.close()

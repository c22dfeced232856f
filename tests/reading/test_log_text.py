"""Logs as text."""

from __future__ import annotations

import pytest

from apiserver.reading import log_text
from apiserver.reading.log_text import UndefinedPlaceholders, json_line, text_line
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.reading import events
from tests.reading.events import NOW, TASK

pytestmark = pytest.mark.anyio

EVENT = {"type": "log", "task": "t", "timestamp": 7, "worker": "w", "level": "info", "msg": "{level}\nä", "iter": 3}


@pytest.mark.parametrize(
    ("line_format", "line"),
    [
        ("{asctime} {worker} {level} {msg}", "7 w info {level}\nä\n"),
        ("{iter}{iter}{metric}", "33\n"),
        ("{{msg}} {{{level}}}", "{msg} {info}\n"),
        ("100% %s $level", "100% %s $level\n"),
        ("", "\n"),
    ],
)
def test_fields_take_their_places(line_format: str, line: str) -> None:
    assert text_line(line_format)(EVENT).decode() == line


@pytest.mark.parametrize(
    ("line_format", "names"),
    [
        ("{foo} {msg} {bar}", ["foo", "bar"]),
        ("{msg.__class__}", ["msg.__class__"]),
        ("{msg[0]}", ["msg[0]"]),
        ("{asctime:>999999999}", ["asctime:>999999999"]),
        ("{x:>999999999}", ["x:>999999999"]),
        ("{msg!r}", ["msg!r"]),
        ("{}{0}", ["", "0"]),
        ("{msg", ["{"]),
        ("msg}", ["}"]),
        ("{{msg}", ["}"]),
        ("{asctime:{msg}}", ["{", "}"]),
        ("{ msg }", [" msg "]),
        ("{@timestamp}", ["@timestamp"]),
    ],
)
def test_nothing_but_fields_is_taken(line_format: str, names: list[str]) -> None:
    with pytest.raises(UndefinedPlaceholders) as undefined:
        text_line(line_format)
    assert undefined.value.names == names


async def test_a_log_comes_in_chunks_and_ends_where_it_ended_when_it_began(
    store: EmbeddedEventStore,
) -> None:
    await store.add(events.lines([NOW] * 5 + [NOW + 1] * 3))
    sizes, text = [], b""
    async for chunk in log_text.chunks(store, TASK, text_line("{msg}"), lines_at_once=3):
        sizes.append(chunk.count(b"\n"))
        text += chunk
        await store.add(events.lines([NOW + 2]))
    assert sizes == [3, 3, 2]
    assert text.decode().split("\n") == [*(f"line {n}" for n in range(8)), ""]


async def test_an_empty_log_is_no_text(store: EmbeddedEventStore) -> None:
    assert [chunk async for chunk in log_text.chunks(store, TASK, json_line)] == []

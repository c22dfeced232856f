"""A whole log as text, for download: each event as a line of JSON, or as a line in a format of the reader's.

The text is made and sent page by page, so that the whole of it is never in memory.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from functools import partial

import orjson

from apiserver.common import answers
from apiserver.events import documents
from apiserver.events.model import EventType, JsonObject, LogLine, LogPosition, Owner
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.protocols.logs import LogStore
from apiserver.stores.events.sizes import bytes_of_all

#: Lines that are read at once.
PAGE = 1000
#: The fields that a line format may name. `asctime` is the timestamp, in epoch milliseconds.
FIELDS = ("asctime", "worker", "level", "msg", "metric", "variant", "iter", "timestamp", "task")

#: An escaped brace, a placeholder, or a brace that is neither.
_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")

Line = Callable[[JsonObject], bytes]


class UndefinedPlaceholders(Exception):
    """A line format has placeholders that are not FIELDS, or a single brace."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(", ".join(names))
        self.names = names


def json_line(event: JsonObject) -> bytes:
    """The event as one line of JSON, without its type and task. Its timestamp is named `asctime`."""
    line = {name: value for name, value in event.items() if name not in ("type", "task", "timestamp")}
    return orjson.dumps({**line, "asctime": event["timestamp"]}, option=orjson.OPT_APPEND_NEWLINE)


def text_line(line_format: str) -> Line:
    """A function that writes events in a format, which has FIELDS as {field}, and {{ and }} for braces.

    For example, "{worker} {{{level}}}: {msg}" gives lines like "gpu-1 {info}: epoch 3". Nothing in a format is ever
    evaluated. UndefinedPlaceholders for any other name, and for a single brace.
    """
    parts = _parts(line_format)

    def line(event: JsonObject) -> bytes:
        known = {**event, "asctime": event["timestamp"]}
        return ("".join(str(known.get(part, "")) if is_field else part for part, is_field in parts) + "\n").encode()

    return line


def _parts(line_format: str) -> list[tuple[str, bool]]:
    """The parts of a format in their order: texts (False) and names of fields (True)."""
    parts: list[tuple[str, bool]] = []
    undefined: list[str] = []
    end = 0
    for token in _TOKEN.finditer(line_format):
        name, text = token[1], token[0]
        parts.append((line_format[end : token.start()], False))
        end = token.end()
        if name in FIELDS:
            parts.append((name, True))
        elif text in ("{{", "}}"):
            parts.append((text[0], False))
        else:
            undefined.append(text if name is None else name)
    if undefined:
        raise UndefinedPlaceholders(undefined)
    return [*parts, (line_format[end:], False)]


async def chunks(store: LogStore, owner: Owner, line: Line, lines_at_once: int = PAGE) -> AsyncGenerator[bytes, None]:
    """The text of all lines that are stored when the download begins, by time.

    A thread makes it: while many are downloading, the event loop would be held for the time that all their pages take.
    """
    series = SeriesQuery(owner, EventType.LOG)
    newest = await store.log_lines(series, PageQuery(1, descending=True))
    end = newest.pop().position if newest else None
    after: LogPosition | None = None
    while end is not None and after != end:
        read = partial(store.log_lines, series, PageQuery(lines_at_once, after))
        page = await answers.held_page(read, bytes_of_all, first=after is None)
        inside = [one for one in page if one.position <= end]
        if not inside:
            return
        after = inside[-1].position
        made = [await asyncio.to_thread(_text, owner, inside, line)]
        del page, inside  # so that they are not in memory while their text is sent
        answers.made(len(made[0]))
        yield made.pop()


def _text(owner: Owner, lines: list[LogLine], line: Line) -> bytes:
    return b"".join(line(documents.log(owner, one)) for one in lines)

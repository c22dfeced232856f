"""Logs: the lines of a task's console, all of them or those that match."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import Depends, Query, Response

from apiserver.common import answers
from apiserver.common.off_loop import off_loop
from apiserver.data.calls import DataCall, TheCall, bad_parameter
from apiserver.data.parameters import Axis, From, Names, PlainCsv, To, range_of
from apiserver.data.places import find_owner
from apiserver.data.routes import router, table
from apiserver.data.sending import answer
from apiserver.events.log_filter import LineFilter
from apiserver.events.model import EventType, LogLine, LogPosition, Owner
from apiserver.events.queries import PageQuery, Range, SeriesQuery
from apiserver.reading import log_search
from apiserver.reading.logs import beyond
from apiserver.stores.documents.base import InvalidFilter
from apiserver.stores.documents.dialect import patterns
from apiserver.stores.events.sizes import bytes_of_all
from apiserver.tables.formats import TABLES, Format, chosen
from apiserver.tables.formats.writers import Options
from apiserver.tables.table import Batch, Column, Kind, Table

routes = router()

FORMATS: tuple[Format, ...] = (*TABLES, Format.TEXT)
#: Lines of a window, if nothing is said.
_WINDOW = 200
#: The most lines that `tail` answers, and that a window has.
_MOST_TAIL = 10_000

_COLUMNS = (
    *(Column("timestamp", Kind.TIME), Column("worker", Kind.TEXT), Column("level", Kind.TEXT)),
    *(Column("iter", Kind.INT), Column("msg", Kind.TEXT)),
)

#: The columns of a window. `position` stays the same if lines come late, which changes the numbers behind them.
#: `length` is that of the whole message, in characters.
_NUMBERED = (Column("line", Kind.INT), Column("position", Kind.TEXT), *_COLUMNS, Column("length", Kind.INT))

Tail = Annotated[
    int | None,
    Query(
        ge=1,
        le=_MOST_TAIL,
        description="Only the last so many messages; in `.txt`, where a message may have several lines, only the last "
        "so many lines, as `tail -n` would.",
    ),
]

Offset = Annotated[
    int | None,
    Query(
        ge=0,
        le=2**63 - 1,
        description="A window: the lines from this number on. The oldest line has number 0. The header `X-Total-Count` "
        "says how many there are in all.",
    ),
]
Limit = Annotated[
    int | None,
    Query(ge=1, le=_MOST_TAIL, description=f"How many lines the window has, {_WINDOW} if nothing is said."),
]
Numbers = Annotated[
    list[Annotated[int, Query(ge=0, le=2**63 - 1)]],
    Query(alias="line", max_length=1000, description="May repeat: only the lines with these numbers."),
]

Longest = Annotated[
    int | None,
    Query(ge=1, le=2**31, description="In a window, messages are cut to so many characters; `length` says how many."),
]


async def filter_of(
    search: Annotated[
        str | None, Query(max_length=1000, description="Only lines with this text, in upper or lower case.")
    ] = None,
    regex: Annotated[
        str | None, Query(max_length=1000, description="Only lines that this RE2 pattern matches.")
    ] = None,
    without: Annotated[
        str | None, Query(max_length=1000, description="Only lines that this RE2 pattern does not match.")
    ] = None,
    levels: Annotated[Names, Query(alias="level")] = [],  # noqa: B006
    workers: Annotated[Names, Query(alias="worker")] = [],  # noqa: B006
) -> LineFilter:
    """The lines that a search asks for. 400 for both `search` and `regex`, and for a wrong expression."""
    message, among = None, None
    if search is not None and regex is not None:
        raise bad_parameter("regex", "give either 'search' or 'regex'")
    if search is not None:
        message = among = log_search.text(search, any_case=True)
    if regex is not None:
        message, among = _compiled("regex", regex), patterns.among_lines(regex)
    left_out = _compiled("without", without) if without is not None else None
    return LineFilter(frozenset(level.lower() for level in levels), frozenset(workers), message, among, left_out)


def _compiled(parameter: str, pattern: str) -> patterns.Search:
    try:
        return patterns.compile_pattern(parameter, pattern)
    except InvalidFilter as error:
        raise bad_parameter(parameter, str(error).partition(": ")[2]) from None


Wanted = Annotated[LineFilter, Depends(filter_of)]


@table(routes, "/tasks/{task:path}/log", FORMATS)
async def of_task(
    call: TheCall,
    task: str,
    filter: Wanted,
    start: From = None,
    stop: To = None,
    tail: Tail = None,
    offset: Offset = None,
    limit: Limit = None,
    numbers: Numbers = [],  # noqa: B006
    longest: Longest = None,
    csv: PlainCsv = None,
) -> Response:
    """The lines of a task's console, the oldest first. `from` and `to` are times.

    A line is a message as it was reported. Only `.txt` has a message of several lines on several lines.
    With `offset`, `limit` or `line` they are a window: lines by their numbers and, but in `.txt`, with their numbers.
    """
    owner = await find_owner(call, task)
    options = Options(csv == "plain")
    format = chosen(call.request.path_params.get("ending"), call.headers.get("accept", ""), FORMATS)
    if offset is not None or limit is not None or numbers:
        if filter != LineFilter() or (start, stop, tail) != (None,) * 3:
            raise bad_parameter(
                "offset", "lines are numbered in the whole log: no filters, no 'from', 'to' or 'tail' here"
            )
        if numbers and (offset is not None or limit is not None):
            raise bad_parameter("line", "give either 'line', or 'offset' and 'limit'")
        first = offset or 0
        asked = sorted(set(numbers)) or range(first, first + (limit or _WINDOW))
        return await _window(call, owner, asked, longest, options, of_text=format is Format.TEXT)
    if longest is not None:
        raise bad_parameter("longest", "it is for windows: give 'offset', 'limit' or 'line', too")
    times = range_of(start, stop, Axis.TIMESTAMP)

    def make() -> Table:
        if tail is None:
            return Table(_COLUMNS, _all(call, owner, filter, times), {"task": owner.id})
        of_text = format is Format.TEXT
        return Table(_COLUMNS, _last(call, owner, filter, times, tail, of_text=of_text), {"task": owner.id})

    return await answer(call, f"{owner.id}-log", make, owners=[owner], possible=FORMATS, options=options)


async def _window(
    call: DataCall, owner: Owner, numbers: Sequence[int], longest: int | None, options: Options, *, of_text: bool
) -> Response:
    """Lines by their numbers. The header X-Total-Count says how many there are in all."""
    store, totals = call.backend.events, list[int]()

    async def rows() -> AsyncGenerator[Batch, None]:
        # Here, behind the version of the answer: lines that come between the two would never be told by it.
        lines, total = await store.log_numbered(owner, numbers)
        answers.hold(bytes_of_all(lines))
        totals.append(total)
        count, columns = _batch([line._replace(message=line.message[:longest]) for line in lines])
        if not of_text:
            positions, lengths = [position_text(line.position) for line in lines], [len(line.message) for line in lines]
            columns = [list(numbers[:count]), positions, *columns, lengths]
        yield Batch(count, columns)

    def make() -> Table:
        return Table(_COLUMNS if of_text else _NUMBERED, rows(), {"task": owner.id})

    response = await answer(call, f"{owner.id}-log", make, owners=[owner], possible=FORMATS, options=options)
    total = totals[-1] if totals else (await store.log_numbered(owner, []))[1]
    response.raw_headers.append((b"x-total-count", str(total).encode()))
    return response


def position_text(position: LogPosition) -> str:
    """A line's position as text: its timestamp, a dot, and its place among lines of that timestamp."""
    return f"{position.timestamp}.{position.sequence}"


async def _all(call: DataCall, owner: Owner, filter: LineFilter, times: Range) -> AsyncGenerator[Batch, None]:
    """The lines that are stored when the answer begins, by time."""
    store, series = call.backend.events, SeriesQuery(owner, EventType.LOG)
    newest = await store.log_lines(series, PageQuery(1, descending=True))
    end = newest[0].position if newest else None
    after: LogPosition | None = beyond(times.least - 1, earlier=False) if times.least > -(2**63) else None
    first = True
    while end is not None and (after is None or after < end):
        read = partial(store.log_lines, series, PageQuery(call.backend.bounds.log_lines, after))
        page = await answers.held_page(read, bytes_of_all, first=first)
        first = False
        if not page:
            return
        after = page[-1].position
        inside = [line for line in page if line.position <= end and line.position.timestamp <= times.greatest]
        ended = len(inside) < len(page)
        matching = await off_loop(len(inside), partial(filter.of, inside))
        del page, inside
        yield _batch(matching)
        del matching
        if ended:
            return


async def _last(
    call: DataCall, owner: Owner, filter: LineFilter, times: Range, limit: int, *, of_text: bool
) -> AsyncGenerator[Batch, None]:
    """The last messages that match, as far as an answer may be large; with `of_text`, the last lines of their text."""
    store, series = call.backend.events, SeriesQuery(owner, EventType.LOG)
    after: LogPosition | None = beyond(times.greatest + 1, earlier=True) if times.greatest < 2**63 - 1 else None
    matches: list[LogLine] = []
    while len(matches) < limit:
        page = await store.log_lines(series, PageQuery(call.backend.bounds.log_lines, after, descending=True))
        if not page:
            break
        after = page[-1].position
        inside = [line for line in page if line.position.timestamp >= times.least]
        matching = await off_loop(len(inside), partial(filter.of, inside))
        answers.hold(bytes_of_all(matching))
        matches += matching
        if len(inside) < len(page):
            break
    last = matches[:limit][::-1]
    yield _batch(_last_lines(last, limit) if of_text else last)


def _last_lines(messages: list[LogLine], limit: int) -> list[LogLine]:
    """The messages that have the last lines of the text of all of them; of the first one perhaps only some lines."""
    kept: list[LogLine] = []
    for message in reversed(messages):
        if limit <= 0:
            break
        lines = message.message.removesuffix("\n").split("\n")
        kept.append(message._replace(message="\n".join(lines[-limit:])))
        limit -= len(lines)
    return kept[::-1]


def _batch(lines: list[LogLine]) -> Batch:
    columns: list[list[Any]] = [
        [line.position.timestamp for line in lines],
        [line.worker for line in lines],
        [line.level for line in lines],
        [line.iter for line in lines],
        [line.message for line in lines],
    ]
    return Batch(len(lines), columns)

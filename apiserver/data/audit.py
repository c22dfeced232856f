"""The audit log as a table, for admins: who did what, from where, when."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Annotated, Any

import orjson
from fastapi import Query, Response

from apiserver.common import answers
from apiserver.common.errors import unavailable
from apiserver.common.times import epoch_millis
from apiserver.data.calls import TheCall, bad_parameter
from apiserver.data.parameters import PlainCsv
from apiserver.data.routes import router, table
from apiserver.data.sending import answer
from apiserver.operating.audit.reading import Wanted, check_time, read
from apiserver.rpc.errors import ApiError
from apiserver.services.access.roles import check
from apiserver.stores.data_folder import DataFolder
from apiserver.tables.formats.writers import Options
from apiserver.tables.table import Column, Kind, Table, once

routes = router()

_MOST = 2000
#: Bytes of a row in memory.
_BYTES = 2000
_TEXTS = ("action", "user", "name", "key", "address")
_COLUMNS = (
    *(Column("n", Kind.INT), Column("time", Kind.DATE), *(Column(name, Kind.TEXT) for name in _TEXTS)),
    *(Column("what", Kind.JSON), Column("code", Kind.INT), Column("times", Kind.INT)),
)

Since = Annotated[str, Query(max_length=40, description="A time in UTC, or its beginning: `2026-11-24T15`.")]
User = Annotated[str, Query(max_length=200, description="The id or the name of a user.")]
Action = Annotated[str, Query(max_length=100, description="An action, or how it begins: `tasks.`.")]
Before = Annotated[
    int | None, Query(ge=1, description="Only lines before the one with this number, for further pages.")
]
Limit = Annotated[int, Query(ge=1, le=_MOST, description="The most lines of the answer.")]


@table(routes, "/audit")
async def audit(
    call: TheCall,
    since: Since = "",
    user: User = "",
    action: Action = "",
    before: Before = None,
    limit: Limit = 200,
    csv: PlainCsv = None,
) -> Response:
    """The audit log, the newest lines first. Admins only: they see lines of their company.

    Lines of the server itself, and of callers whom nobody knows, are for admins of the server's own company.
    """
    call.refuse_link()
    check(call.caller, "audit.get", reads=True)
    settings = call.backend.settings
    if settings.audit != "file":
        raise ApiError(404, 0, f"The audit log is not kept in files: the setting audit is {settings.audit}")
    try:
        if since:
            check_time(since)
    except ValueError as error:
        raise bad_parameter("since", str(error)) from None
    own = call.caller.company
    wanted = Wanted((own, "") if own == settings.company else (own,), since, user, action, before)
    found = read(DataFolder(settings.data).audit, wanted, call.backend.bounds.audit_seconds)
    try:
        lines = await asyncio.to_thread(lambda: list(islice(found, limit)))
    except TimeoutError:
        raise unavailable(
            f"Looking through the audit log takes longer than {call.backend.bounds.audit_seconds} seconds: say since"
        ) from None
    answers.hold(_BYTES * len(lines))
    rows = [_row(line) for line in lines]

    def make() -> Table:
        columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in _COLUMNS]
        return Table(_COLUMNS, once(*columns))

    return await answer(call, "audit", make, options=Options(csv == "plain"))


def _row(line: dict[str, Any]) -> tuple[Any, ...]:
    texts = (line.get(name) or None for name in _TEXTS)
    return (
        line["n"],
        epoch_millis(line.get("time")),
        *texts,
        orjson.dumps(line.get("what")),
        line["code"],
        line["times"],
    )

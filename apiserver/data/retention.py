"""What retention would delete now, by the rules of the settings or by others that somebody wants to try, for admins."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import Query, Response

from apiserver.common.times import now_ms
from apiserver.data.calls import DataCall, TheCall, bad_parameter
from apiserver.data.parameters import PlainCsv
from apiserver.data.routes import router, table
from apiserver.data.sending import answer
from apiserver.operating.retention.run import Gone, Run
from apiserver.services.access.roles import check
from apiserver.settings.retention_rules import RetentionRule, rules_of
from apiserver.tables.formats.writers import Options
from apiserver.tables.table import Batch, Column, Kind, Table

routes = router()

#: Who may call this endpoint may see what would be deleted.
_ENDPOINT = "server.get_stats"
_ROWS_AT_ONCE = 100
_COLUMNS = (
    *(Column("project", Kind.TEXT), Column("task", Kind.TEXT), Column("name", Kind.TEXT), Column("type", Kind.TEXT)),
    *(Column("keep", Kind.TEXT), Column("events", Kind.INT), Column("bytes", Kind.INT)),
    *(Column("oldest", Kind.TIME), Column("newest", Kind.TIME)),
)

Rules = Annotated[
    str | None,
    Query(
        max_length=10_000,
        description='Rules in JSON to try instead of those of the settings: `[{"types": ["logs"], "keep": "90 d"}]`.',
    ),
]


@table(routes, "/retention")
async def retention(call: TheCall, rules: Rules = None, csv: PlainCsv = None) -> Response:
    """What retention would delete now in the caller's company: a row for each task and type. Admins only.

    Nothing is deleted. `bytes` are those of texts and documents, 0 for scalars.
    """
    call.refuse_link()
    check(call.caller, _ENDPOINT, reads=True)
    tried = call.backend.settings.retention if rules is None else _parsed(rules)

    def make() -> Table:
        return Table(_COLUMNS, _batches(call, tried))

    return await answer(call, "retention", make, options=Options(csv == "plain"))


def _parsed(rules: str) -> tuple[RetentionRule, ...]:
    try:
        items = json.loads(rules)
    except (ValueError, RecursionError) as error:
        raise bad_parameter("rules", f"not a list of rules in JSON: {error}") from None
    if not isinstance(items, list):
        raise bad_parameter("rules", "not a list of rules")
    try:
        return rules_of(items)
    except (ValueError, RecursionError) as error:
        raise bad_parameter("rules", str(error)) from None


async def _batches(call: DataCall, rules: Sequence[RetentionRule]) -> AsyncGenerator[Batch, None]:
    backend = call.backend
    run = Run(backend.events, backend.documents, rules, now=now_ms(), company=call.caller.company)
    rows: list[Gone] = []
    async with aclosing(run.would_go()) as found:
        async for gone in found:
            rows.append(gone)
            if len(rows) == _ROWS_AT_ONCE:
                yield _batch(rows)
                rows = []
    if rows:
        yield _batch(rows)


def _batch(rows: Sequence[Gone]) -> Batch:
    columns: list[list[Any]] = [
        [gone.project or None for gone in rows],
        [gone.task for gone in rows],
        [gone.name for gone in rows],
        [gone.type.plural for gone in rows],
        *([getattr(gone, name) for gone in rows] for name in ("keep", "events", "bytes", "oldest", "newest")),
    ]
    return Batch(len(rows), columns)

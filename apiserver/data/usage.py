"""How much is kept, by task, by project, or in all: a row for each of them and type of event."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from enum import StrEnum
from itertools import islice
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import Query, Response

from apiserver.common.errors import not_granted
from apiserver.data.calls import DataCall, TheCall, bad_parameter
from apiserver.data.parameters import PlainCsv
from apiserver.data.places import ALL, find_project
from apiserver.data.routes import router, table
from apiserver.data.sending import answer
from apiserver.events.model import EventType
from apiserver.services.quotas.accounts import Share
from apiserver.services.quotas.usage import CompanyUsage
from apiserver.tables.formats.writers import Options
from apiserver.tables.table import Batch, Column, Kind, Table

routes = router()

_ROWS_AT_ONCE = 5000


class By(StrEnum):
    """What a row of the table is about."""

    TASK = "task"
    PROJECT = "project"
    TYPE = "type"
    QUOTA = "quota"


_PROJECT = (Column("project", Kind.TEXT), Column("project_name", Kind.TEXT))
_OWNER = (Column("kind", Kind.TEXT), Column("id", Kind.TEXT), Column("name", Kind.TEXT))
_AMOUNTS = (
    *(Column("type", Kind.TEXT), Column("bytes", Kind.INT), Column("series", Kind.INT)),
    *(Column("points", Kind.INT), Column("lines", Kind.INT), Column("samples", Kind.INT)),
    Column("files", Kind.INT),
)
_QUOTA = (
    *(Column("of", Kind.TEXT), Column("id", Kind.TEXT), Column("name", Kind.TEXT), Column("bounded", Kind.TEXT)),
    *(Column("used", Kind.INT), Column("quota", Kind.INT), Column("kind", Kind.TEXT)),
)
_COLUMNS = {By.TASK: (*_PROJECT, *_OWNER, *_AMOUNTS), By.PROJECT: (*_PROJECT, *_AMOUNTS), By.TYPE: _AMOUNTS}


@table(routes, "/usage")
async def usage(
    call: TheCall,
    by: Annotated[
        By,
        Query(
            description="A row for each task (or model), project, or only type of event. `quota`: how much"
            " of the quotas of bytes and series is used up by each task, project, user or company that has part of one,"
            " the fullest first."
        ),
    ] = By.TASK,
    project: Annotated[
        str | None, Query(description="Only of this project, by its id or name; empty: of none.")
    ] = None,
    of: Annotated[
        Literal["task", "project", "user", "company"] | None,
        Query(description="Only quotas of these, with `by=quota`; there may be very many of tasks."),
    ] = None,
    limit: Annotated[
        int | None, Query(ge=1, description="Only the fullest ones, so many of them, with `by=quota`.")
    ] = None,
    csv: PlainCsv = None,
) -> Response:
    """How many events of which type the tasks and models of the caller's company have, and how many bytes they take.

    `series` counts each metric with a variant, as quotas do; a log is no series. A row of type `files` says the same of
    the files in the folder of a task; that of all other files has no `kind` and no `project`. The answer is up to a
    minute old, or ten times as old as adding up takes. Events that are to replace others may count beside them for some
    seconds. On Elasticsearch, numbers and bytes are estimates. If adding up takes longer than 20 seconds, the answer is
    503.

    With `by=quota`, `used` is as of now, with what was added since the last sum. `kind` tells models from tasks.
    """
    call.refuse_link()
    if call.caller.grant.project is not None:
        raise not_granted("an access key that is limited to a project does not tell what the company keeps")
    for name, value in (("of", of), ("limit", limit)):
        if value is not None and by is not By.QUOTA:
            raise bad_parameter(name, "it goes only with by=quota")
    if project:
        id = (await find_project(call, project))["id"]
        project = None if id == ALL else id
    if by is By.QUOTA:
        listed = (await _shares(call, of, project))[:limit]

        def make() -> Table:
            return Table(_QUOTA, _batches(map(_row_of, listed)))
    else:
        kept = await call.backend.usages.of(call.caller.company)

        def make() -> Table:
            return Table(_COLUMNS[by], _batches(_rows(kept, by, project)))

    return await answer(call, f"usage-by-{by}", make, options=Options(csv == "plain"))


async def _shares(call: DataCall, of: str | None, project: str | None) -> list[Share]:
    """How much of its quotas each has used up, the fullest first; of one project, and of the tasks in it, or of all."""
    quotas = call.backend.quotas
    if quotas is None or not quotas.bounds_amounts:
        return []
    shares = await quotas.amounts.of_company(call.caller.company)
    if of is not None:
        shares = [share for share in shares if share.account.subject.of == of]
    if project is not None:
        of_project = (await call.backend.usages.of(call.caller.company)).of_project(project)
        ids = {project, *(owner.id for owner in of_project.kept.usage.owners)}
        shares = [share for share in shares if share.account.subject.id in ids]
    return shares


def _row_of(share: Share) -> Sequence[Any]:
    of, _, id = share.account.subject
    kind = "model" if share.account.is_model else of
    return of, id, share.account.name or "", share.what, share.used, share.bound, kind


async def _batches(rows: Iterator[Sequence[Any]]) -> AsyncGenerator[Batch, None]:
    while part := await asyncio.to_thread(lambda: list(islice(rows, _ROWS_AT_ONCE))):
        yield Batch(len(part), [list(column) for column in zip(*part, strict=True)])


def _rows(company: CompanyUsage, by: By, project: str | None) -> Iterator[Sequence[Any]]:
    """A row for each type of event that an owner, project or all have, and then one for the files of each."""
    if project is not None:
        company = company.of_project(project)
    usage, files = {By.TASK: lambda: company.kept, By.PROJECT: company.by_project, By.TYPE: company.in_all}[by]()

    def about(n: int) -> Sequence[Any]:
        if by is By.TYPE:
            return ()
        if by is By.PROJECT:
            return company.projects[n]
        owner = usage.owners[n]
        return (*company.projects[company.project_of[n]], owner.kind if owner.id else "", owner.id, company.names[n])

    place = {owner: n for n, owner in enumerate(usage.owners)}
    for owner, type, series, events, bytes in usage.rows():
        points, lines = type is EventType.SCALAR, type is EventType.LOG
        counted = (events if points else 0, events if lines else 0, 0 if points or lines else events)
        yield (*about(place[owner]), type.plural, bytes, series, *counted, 0)
    for n in np.flatnonzero(files.any(axis=1)).tolist():
        count, bytes = files[n].tolist()
        yield (*about(n), "files", bytes, 0, 0, 0, 0, count)

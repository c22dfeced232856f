"""Tables of projects, and of a project's tasks."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import orjson
from fastapi import Query, Response

from apiserver.common import answers
from apiserver.common.errors import Refusal
from apiserver.common.times import epoch_millis
from apiserver.data.calls import DataCall, TheCall, bad_parameter
from apiserver.data.conditions import conditions_filter
from apiserver.data.fields import USUAL, Field, field_of, sort_fields
from apiserver.data.parameters import PlainCsv
from apiserver.data.places import ALL, find_project
from apiserver.data.routes import router, table
from apiserver.data.sending import answer
from apiserver.rpc.errors import ApiError
from apiserver.services.lists.conditions import build_filter, hide_hidden
from apiserver.services.lists.paging import FURTHEST
from apiserver.services.projects.tree import PROJECTS, with_subprojects
from apiserver.services.tasks.read import SPEC
from apiserver.services.tasks.task_documents import TASKS
from apiserver.stores.documents.query import AllOf, AtLeast, Document, Filter, In, NoneOf, Sort, all_of
from apiserver.stores.documents.scoped import VisibleDocuments
from apiserver.tables.formats.writers import Options
from apiserver.tables.table import Batch, Column, Kind, Table

routes = router()

#: The most columns of a table, and fields that it is sorted by.
_MOST_COLUMNS, _MOST_SORTED = 500, 10
_ID_BYTES = 150
#: The most rows of a window into a table, and values that tasks are grouped by.
_MOST_ROWS, _MOST_GROUPS = 10_000, 10_000
#: Characters of a value that tasks are grouped by.
_LONGEST_VALUE = 1000
#: The filters of `where`; `*` stands for any field below.
_FILTERS = (
    *SPEC.names,
    *("search_text", "search_hidden", "filters", "_any_", "_all_", "conditions"),
)

_PROJECTS = (
    *(Column("id", Kind.TEXT), Column("name", Kind.TEXT), Column("description", Kind.TEXT)),
    *(Column("tags", Kind.JSON), Column("created", Kind.DATE), Column("last_update", Kind.DATE)),
    Column("tasks", Kind.INT),
)

Columns = Annotated[
    str | None,
    Query(
        max_length=20_000,
        description="Names of columns, with commas between them: fields as the API names them, `hyperparams.Args/lr`, "
        "`last:loss/train`, `min:…`, `max:…`, `mean:…`, `min_iter:…`. A metric ends at the last slash or, where a task "
        "has no such value, at one before it, up to the eighth from the end. A name with a comma stands in quotes.",
    ),
]
Where = Annotated[
    str | None,
    Query(max_length=20_000, description='Which tasks: a JSON object as for tasks.get_all, `{"status": ["failed"]}`.'),
]
Sorted = Annotated[
    str | None, Query(alias="sort", max_length=2000, description="Names of columns; `-` before one means descending.")
]
Recursive = Annotated[bool, Query(description="Also the tasks of all projects inside it.")]
Offset = Annotated[int, Query(ge=0, le=FURTHEST, description="How many of the first rows to leave out.")]
Limit = Annotated[
    int | None,
    Query(
        ge=1,
        le=_MOST_ROWS,
        description="How many rows to answer. The header `X-Total-Count` then says how many there are in all.",
    ),
]


@table(routes, "/projects")
async def projects(call: TheCall, csv: PlainCsv = None) -> Response:
    """All projects that the caller may read, by name, and how many tasks each has without its sub-projects."""

    def make() -> Table:
        return Table(_PROJECTS, _project_rows(call))

    call.refuse_link()
    return await answer(call, "projects", make, options=Options(csv == "plain"))


async def _project_rows(call: DataCall) -> AsyncGenerator[Batch, None]:
    documents = call.backend.visible_to(call.caller)
    hidden = hide_hidden({})
    counts = await documents.count_by(TASKS, hidden, ["project"])
    fields = ["id", "name", "description", "tags", "created", "last_update"]
    found = await documents.find(PROJECTS, hidden, projection=fields, sort=[("name", 1)], counted=answers.counter())
    if found:
        rows = [_project(one, counts.get((one["id"],), 0)) for one in found]
        yield Batch(len(found), [list(column) for column in zip(*rows, strict=True)])


def _project(one: Document, tasks: int) -> tuple[Any, ...]:
    times = epoch_millis(one.get("created")), epoch_millis(one.get("last_update"))
    return one["id"], one.get("name"), one.get("description"), orjson.dumps(one.get("tags") or []), *times, tasks


@table(routes, "/projects/{project:path}/tasks")
async def tasks(
    call: TheCall,
    project: str,
    columns: Columns = None,
    where: Where = None,
    sort: Sorted = None,
    recursive: Recursive = False,
    offset: Offset = 0,
    limit: Limit = None,
    csv: PlainCsv = None,
) -> Response:
    """The tasks of a project, with any field, parameter and metric as a column. The project `*` means all projects."""
    place = await find_project(call, project)
    names = split_names("columns", columns or "", _MOST_COLUMNS) or USUAL
    fields = [field_of(name) for name in dict.fromkeys(names)]
    order = sort_fields(split_names("sort", sort or "-created", _MOST_SORTED))
    condition = await wanted_tasks(call, place["id"], where, recursive=recursive)
    documents = call.backend.visible_to(call.caller)
    ids = await _ids(documents, condition, sort=order, skip=offset, limit=limit)

    def make() -> Table:
        return Table([field.column for field in fields], _task_rows(call, ids, fields), {"project": place["id"]})

    response = await answer(call, f"{place['id']}-tasks", make, options=Options(csv == "plain"))
    if limit is not None:
        total = offset + len(ids) if 0 < len(ids) < limit else await documents.count(TASKS, condition)
        response.raw_headers.append((b"x-total-count", str(total).encode()))
    return response


@table(routes, "/projects/{project:path}/groups")
async def groups(
    call: TheCall,
    project: str,
    by: Annotated[str, Query(max_length=1024, description="A column: `hyperparams.Args/lr`, `tags`.")] = "status",
    where: Where = None,
    recursive: Recursive = False,
    csv: PlainCsv = None,
) -> Response:
    """How many tasks have which value in a column; null counts those that have none.

    A task with several tags counts in the group of each. If there are more than 10,000 values, those of the most tasks
    are answered. A column with a value of more than 1,000 characters is refused.
    """
    field = field_of(by, "by")
    place = await find_project(call, project)
    condition = await wanted_tasks(call, place["id"], where, recursive=recursive)

    def make() -> Table:
        columns = Column("value", Kind.JSON), Column("tasks", Kind.INT)
        return Table(columns, _group_rows(call, condition, field), {"project": place["id"]})

    return await answer(call, f"{place['id']}-groups", make, options=Options(csv == "plain"))


async def _group_rows(call: DataCall, wanted: Filter, field: Field) -> AsyncGenerator[Batch, None]:
    documents = call.backend.visible_to(call.caller)
    counts = Counter[Any]()
    for path, among in _parts(wanted, field):
        counting = partial(documents.count_items, TASKS, among, path, longest=_LONGEST_VALUE)
        read = partial(counting, counted=answers.counter())
        counts.update(await answers.held_page(read, lambda _: 0, first=True))  # reading has counted them already
    groups = await asyncio.to_thread(_largest, counts)
    del counts
    if groups:
        values, tasks = zip(*groups, strict=True)
        yield Batch(len(groups), [list(values), list(tasks)])


def _parts(condition: Filter, field: Field) -> Iterator[tuple[str, Filter]]:
    """The paths of a column, each with the tasks for which it counts: the last one also for those without a number."""
    numbers: list[Filter] = [{path: AtLeast(-math.inf)} for path in field.paths]
    for place, (path, number) in enumerate(zip(field.paths, numbers, strict=True)):
        earlier, is_last = numbers[:place], place == len(numbers) - 1
        yield path, AllOf([condition, *([NoneOf(earlier)] if earlier else []), *([] if is_last else [number])])


def _largest(counts: Mapping[Any, int]) -> list[tuple[bytes, int]]:
    """The JSON of the values that most tasks have, and how many these are; 400 if a value is too long."""
    if any(isinstance(value, str) and len(value) > _LONGEST_VALUE for value in counts):
        raise bad_parameter("by", f"the column has values of more than {_LONGEST_VALUE} characters")
    of_all = Counter(counts)
    of_all[None] += of_all.pop("", 0)
    return [(orjson.dumps(value), tasks) for value, tasks in of_all.most_common(_MOST_GROUPS) if tasks]


def split_names(parameter: str, names: str, most: int) -> list[str]:
    """The names in a parameter, which has commas between them; a name with a comma in it stands in double quotes."""
    split, quoted = [""], False
    for character in names:
        if character == '"':
            quoted = not quoted
        elif character == "," and not quoted:
            split.append("")
        else:
            split[-1] += character
    found = [name.strip() for name in split if name.strip()]
    if len(found) > most:
        raise bad_parameter(parameter, f"at most {most} are allowed")
    return found


async def find_tasks(
    call: DataCall,
    project: str,
    where: str | None,
    *,
    recursive: bool = False,
    sort: Sort = (("created", -1),),
    among: Sequence[str] = (),
) -> list[str]:
    """The ids of a project's tasks that `where` asks for; 400 if it cannot be understood.

    `among`: only tasks of these ids.
    """
    wanted = await wanted_tasks(call, project, where, recursive=recursive)
    if among:
        wanted = AllOf([{"id": In(list(among))}, wanted])
    return await _ids(call.backend.visible_to(call.caller), wanted, sort=sort)


async def wanted_tasks(call: DataCall, project: str, where: str | None, *, recursive: bool) -> Filter:
    """The filter for a project's tasks (`*`: of all projects) that `where` asks for; 400 if it makes no sense.

    403 if a link's token asks for tasks of projects inside the link's project.
    """
    if recursive and call.link is not None:
        raise ApiError(403, 0, "The link is for one project, without those inside it: leave 'recursive' out")
    await call.backend.last_metrics.settle(call.caller.company)
    request = _where(call, where)
    if project != ALL:
        request |= {"project": [project], "include_subprojects": recursive}
    try:
        conditions = conditions_filter(request.pop("conditions", None) or [])
        fields = build_filter(await with_subprojects(call.of("tasks.get_all"), request), SPEC)
    except Refusal as error:
        raise bad_parameter("where", error.reason) from None
    return all_of([fields, hide_hidden(request), conditions])


async def _ids(
    documents: VisibleDocuments, condition: Filter, *, sort: Sort, skip: int = 0, limit: int | None = None
) -> list[str]:
    tasks = await documents.find(TASKS, condition, projection=["id"], sort=sort, skip=skip, limit=limit)
    answers.hold(_ID_BYTES * len(tasks))
    return [task["id"] for task in tasks]


def _where(call: DataCall, where: str | None) -> dict[str, Any]:
    """The filters of a request to tasks.get_all, validated."""
    if where is None:
        return {}
    try:
        given = orjson.loads(where)
    except orjson.JSONDecodeError as error:
        raise bad_parameter("where", f"it is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise bad_parameter("where", 'it must be a JSON object, such as {"status": ["failed"]}')
    if "project" in given:
        raise bad_parameter("where", "the project is that of the address")
    for name in given:
        if not _is_filter(name):
            raise bad_parameter("where", f"there is no filter '{name[:100]}': use {', '.join(_FILTERS)}")
    conditions = given.pop("conditions", None)
    try:
        return {**call.parts.validate_tasks(given), "conditions": conditions}
    except Refusal as error:
        raise bad_parameter("where", error.reason) from None


def _is_filter(name: str) -> bool:
    return name in _FILTERS or any(one.endswith("*") and name.startswith(one[:-1]) for one in _FILTERS)


async def _task_rows(call: DataCall, ids: list[str], fields: Sequence[Field]) -> AsyncGenerator[Batch, None]:
    """The rows of tasks in the order of their ids; those that were deleted meanwhile are left out."""
    documents = call.backend.visible_to(call.caller)
    paths = [*dict.fromkeys(["id", *(path for field in fields for path in field.needed)])]
    place, size = 0, call.backend.bounds.listed
    while place < len(ids):
        part = ids[place : place + size]
        read = partial(documents.find, TASKS, {"id": In(part)}, projection=_outermost(paths), counted=answers.counter())
        try:
            tasks = await answers.held_page(read, lambda _: 0, first=place == 0)  # reading has counted them already
        except answers.AnswerTooLarge:
            if size == 1:
                raise
            size //= 2
            continue
        place += len(part)
        by_id = {task["id"]: task for task in tasks}
        rows = [by_id[id] for id in part if id in by_id]
        del tasks, by_id
        yield Batch(len(rows), [[field.value(task) for task in rows] for field in fields])


def _outermost(paths: Sequence[str]) -> list[str]:
    """The paths of which none lies inside another."""
    known = set(paths)
    return [path for path in paths if known.isdisjoint(_above(path))]


def _above(path: str) -> Iterator[str]:
    names = path.split(".")
    return (".".join(names[:length]) for length in range(1, len(names)))

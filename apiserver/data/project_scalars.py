"""Scalars of many tasks of a project: each by itself, or one curve for all tasks of a group."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Annotated, Any

import numpy as np
from fastapi import Query, Response

from apiserver.common import answers
from apiserver.common.off_loop import together
from apiserver.data.bins import ranges_of
from apiserver.data.calls import DataCall, TheCall, bad_parameter
from apiserver.data.fields import field_of
from apiserver.data.lists import Recursive, Where, find_tasks
from apiserver.data.parameters import Axis, Names, is_exact, matching
from apiserver.data.places import find_project
from apiserver.data.routes import router, table
from apiserver.data.scalars import FORMATS, Asked, AskedScalars, ScalarOptions, rows
from apiserver.data.sending import answer
from apiserver.events.model import EventType, Owner
from apiserver.reading.groups import Fill, GroupCurve, GroupsQuery, group_curves
from apiserver.reading.histogram import Key
from apiserver.services.tasks.task_documents import TASKS
from apiserver.stores.events.protocols.scalars import OWNERS_AT_ONCE
from apiserver.tables.table import Batch, Column, Kind, Repeated, Table

routes = router()

#: How many curves a group's curves are made of, at most: tasks times series.
_MOST_CURVES = 10_000
#: How many tasks an answer is about, at most.
_MOST_TASKS = 10_000
#: Buckets of a group's curve if the request does not say, and the fewest that there can be.
_BUCKETS, _FEWEST = 1000, 4

_QUANTILES = (0.25, 0.5, 0.75)
#: The columns of a group's curve behind x, by what `group_curves` calls them.
_OF_GROUPS = (
    *(("mean", "mean"), ("std", "std"), ("min", "min"), ("max", "max")),
    *(("q25", 0), ("q50", 1), ("q75", 2)),
)

Tasks = Annotated[Names, Query(alias="task", description="Ids of tasks of the project; without, all of them.")]
Group = Annotated[
    str | None,
    Query(
        max_length=1024,
        description="A column of the project's table, such as `hyperparams.Args/lr`: tasks with the same value there "
        "become one curve. `*`: all tasks become one.",
    ),
]
Bins = Annotated[
    int | None,
    Query(
        ge=2,
        le=100,
        description="With `group`: tasks whose values there are numbers become at most so many groups. Each is a range "
        "of values, such as `0.001 … 0.01`, with about as many tasks as the others.",
    ),
]


@table(routes, "/projects/{project:path}/scalars", FORMATS)
async def of_project(
    call: TheCall,
    project: str,
    asked: AskedScalars,
    options: ScalarOptions,
    tasks: Tasks = [],  # noqa: B006
    group: Group = None,
    bins: Bins = None,
    fill: Annotated[Fill, Query(description="What a task's value is between its own, in a group.")] = Fill.LINEAR,
    where: Where = None,
    recursive: Recursive = False,
) -> Response:
    """The points or buckets of many tasks' curves; with `group`, one curve for each group of tasks.

    A group's curve has, in each bucket, how many tasks take part, the mean of their values there, standard deviation
    and quantiles, and the least and greatest of all their points. A task's value in a bucket is the mean of its points.
    """
    found = await find_project(call, project)
    owners = await _owners(call, found["id"], tasks, where, recursive=recursive)
    name, about = f"{found['id']}-scalars", {"project": found["id"]}
    if group is None:
        if bins is not None:
            raise bad_parameter("bins", "these are ranges of the values in the column 'group'")
        shown = [Column("task", Kind.TEXT), *asked.columns]
        return await answer(
            call,
            name,
            lambda: Table(shown, rows(call, owners, asked, with_task=True), about),
            owners=owners,
            possible=FORMATS,
            options=options,
        )
    if asked.named:
        raise bad_parameter("columns", "a group's curve has all of its columns")
    if 0 < asked.points < _FEWEST:
        raise bad_parameter("points", f"a group's curve has at least {_FEWEST}")
    groups = await _groups(call, owners, group, bins)
    return await answer(
        call,
        name,
        lambda: Table(_columns(asked.axis), _group_rows(call, groups, asked, fill), about),
        possible=FORMATS,
        options=options,
    )


async def _owners(
    call: DataCall, project: str, tasks: Sequence[str], where: str | None, *, recursive: bool
) -> list[Owner]:
    """The tasks that are asked for. 400 if one is not in the project."""
    ids = await find_tasks(call, project, where, recursive=recursive, among=tasks)
    if tasks:
        known = set(ids)
        missing = [id for id in tasks if id not in known]
        if missing:
            raise bad_parameter("task", f"there is no such task in the project: {missing[0][:100]}")
        ids = list(dict.fromkeys(tasks))
    if len(ids) > _MOST_TASKS:
        raise bad_parameter("task", f"these are {len(ids)} tasks; at most {_MOST_TASKS} are possible: use 'where'")
    documents = call.backend.visible_to(call.caller)
    found = {one["id"]: one["company"] for one in await documents.find_kept(TASKS, ids, ("id",))}
    return [Owner(found[id], id) for id in ids if id in found]


async def _groups(call: DataCall, owners: Sequence[Owner], by: str, bins: int | None) -> dict[str, list[Owner]]:
    """The tasks by what they have in a column, as a text, or by its ranges; those without a value are the group ""."""
    if by == "*":
        return {"*": list(owners)}
    field = field_of(by, "group")
    documents = call.backend.visible_to(call.caller)
    found = await documents.find_kept(TASKS, [owner.id for owner in owners], ("id", *field.needed))
    values = {one["id"]: field.value(one) for one in found}
    texts = {owner.id: _text(values.get(owner.id)) for owner in owners}
    names = ranges_of(texts.values(), bins) if bins is not None else {}
    groups: dict[str, list[Owner]] = {name: [] for name in names.values()}
    for owner in owners:
        text = texts[owner.id]
        groups.setdefault(names.get(text, text), []).append(owner)
    return groups


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else "" if value is None else str(value)


async def _series(call: DataCall, owners: Sequence[Owner], asked: Asked) -> list[tuple[str, str]]:
    """The series that are asked for, of all tasks."""
    if is_exact(asked.metrics) and is_exact(asked.variants):
        metrics, variants = set(asked.metrics), set(asked.variants)
        _check(len(owners), len(metrics) * len(variants))
        return sorted(product(metrics, variants))
    names, means = set[tuple[str, str]](), matching(asked.metrics, asked.variants)

    async def add_those_of(owner: Owner) -> None:
        of_owner = await call.backend.events.series(owner, [EventType.SCALAR])
        names.update(name for series in of_owner if means(name := (series.metric, series.variant)))
        _check(len(owners), len(names))

    for start in range(0, len(owners), OWNERS_AT_ONCE):
        await together(*map(add_those_of, owners[start : start + OWNERS_AT_ONCE]))
    return sorted(names)


def _check(tasks: int, series: int) -> None:
    if max(tasks, 1) * series > _MOST_CURVES:
        raise bad_parameter("metric", f"tasks times series must be at most {_MOST_CURVES}: name fewer of them")


async def _group_rows(
    call: DataCall, groups: Mapping[str, Sequence[Owner]], asked: Asked, fill: Fill
) -> AsyncGenerator[Batch, None]:
    owners = [owner for some in groups.values() for owner in some]
    key = Key.DURATION if asked.axis is Axis.RELATIVE else Key(asked.axis.value)
    query = GroupsQuery(asked.points or _BUCKETS, key, fill, _QUANTILES, asked.smooth, asked.range)
    for number, series in enumerate(await _series(call, owners, asked)):
        read = partial(group_curves, call.backend.events, groups, [series], query)
        curves = await answers.held_page(read, lambda _: 0, first=number == 0)  # reading has counted them already
        for of_group in curves.get(series[0], {}).values():
            for name, curve in of_group.items():
                yield _batch(name, series, curve)


def _batch(group: str, series: tuple[str, str], curve: GroupCurve) -> Batch:
    rows = len(curve["x"])
    codes = np.zeros(rows, np.int32)
    names = [Repeated(codes, [name]) for name in (group, *series)]
    numbers = [curve[name] if isinstance(name, str) else curve["quantiles"][name] for _, name in _OF_GROUPS]
    return Batch(rows, [*names, np.asarray(curve["x"]), curve["runs"], *numbers])


def _columns(axis: Axis) -> list[Column]:
    x = Kind.TIME if axis is Axis.TIMESTAMP else Kind.INT
    numbers = [Column("x", x), Column("runs", Kind.INT), *[Column(name, Kind.FLOAT) for name, _ in _OF_GROUPS]]
    return [Column("group", Kind.TEXT), Column("metric", Kind.TEXT), Column("variant", Kind.TEXT), *numbers]

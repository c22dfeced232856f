"""What a task was given and what it made: parameters and configuration, artifacts and models. A row each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fastapi import Response

from apiserver.data.calls import TheCall
from apiserver.data.parameters import PlainCsv
from apiserver.data.places import find_task
from apiserver.data.routes import router, table
from apiserver.data.sending import answer
from apiserver.tables.formats.writers import Options
from apiserver.tables.table import Column, Kind, Table, once

routes = router()

_CONFIGURATION = (
    *(Column("kind", Kind.TEXT), Column("section", Kind.TEXT), Column("name", Kind.TEXT)),
    *(Column("value", Kind.TEXT), Column("type", Kind.TEXT), Column("description", Kind.TEXT)),
)
_ARTIFACTS = (
    *(Column("kind", Kind.TEXT), Column("name", Kind.TEXT), Column("type", Kind.TEXT)),
    *(Column("uri", Kind.TEXT), Column("size", Kind.INT), Column("hash", Kind.TEXT)),
    *(Column("timestamp", Kind.TIME), Column("model", Kind.TEXT), Column("preview", Kind.TEXT)),
)


@table(routes, "/tasks/{task:path}/config")
async def configuration(call: TheCall, task: str, csv: PlainCsv = None) -> Response:
    """The parameters (`kind` is hyperparams), configuration objects and runtime properties of a task."""
    found = await find_task(call, task, ("hyperparams", "configuration", "runtime"))
    return await _answer(call, found["id"], "config", _CONFIGURATION, _configuration(found), csv)


@table(routes, "/tasks/{task:path}/artifacts")
async def artifacts(call: TheCall, task: str, csv: PlainCsv = None) -> Response:
    """The artifacts of a task, and the models that it read and wrote, with where they lie."""
    document = await find_task(call, task, ("execution.artifacts", "models"))
    models = document.get("models") or {}
    used = [(kind, one) for kind in ("input", "output") for one in models.get(kind) or ()]
    documents = await call.backend.visible_to(call.caller).find_kept(
        "models", [one["model"] for _, one in used], ("id", "name", "uri", "framework")
    )
    by_id = {one["id"]: one for one in documents}
    rows = [
        *map(_artifact, (document.get("execution") or {}).get("artifacts") or ()),
        *(_model(kind, one, by_id.get(one["model"], {})) for kind, one in used),
    ]
    return await _answer(call, document["id"], "artifacts", _ARTIFACTS, rows, csv)


async def _answer(
    call: TheCall, task: str, what: str, columns: tuple[Column, ...], rows: Iterable[tuple[Any, ...]], csv: str | None
) -> Response:
    by_column = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in columns]

    def make() -> Table:
        return Table(columns, once(*by_column), {"task": task})

    return await answer(call, f"{task}-{what}", make, options=Options(csv == "plain"))


def _configuration(task: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    for section, parameters in sorted((task.get("hyperparams") or {}).items()):
        for name, one in sorted(parameters.items()):
            yield "hyperparams", section, name, _text(one.get("value")), one.get("type"), one.get("description")
    for name, one in sorted((task.get("configuration") or {}).items()):
        yield "configuration", None, name, _text(one.get("value")), one.get("type"), one.get("description")
    for name, value in sorted((task.get("runtime") or {}).items()):
        yield "runtime", None, name, _text(value), None, None


def _artifact(artifact: dict[str, Any]) -> tuple[Any, ...]:
    seconds = artifact.get("timestamp")
    time = seconds * 1000 if isinstance(seconds, int) and abs(seconds) < 2**53 else None
    key, type, uri, size, hash = map(artifact.get, ("key", "type", "uri", "content_size", "hash"))
    preview = (artifact.get("type_data") or {}).get("preview")
    return artifact.get("mode") or "output", key, type, uri, size, hash, time, None, preview


def _model(kind: str, used: dict[str, Any], model: dict[str, Any]) -> tuple[Any, ...]:
    name = used.get("name") or model.get("name")
    return f"{kind} model", name, model.get("framework"), model.get("uri"), None, None, None, used["model"], None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)

"""Columns of tables of tasks: which field of a task's document a column shows, and of which kind it is.

A column is named as the API names the field (`status`, `last_iteration`, `runtime.cpu_cores`), or

- `hyperparams.Args/lr`: the value of a parameter, of the section Args,
- `last:loss/train`: the last value of a curve; also `first:`, `min:`, `max:` and `mean:`, and `count:`,
- `min_iter:loss/train`: the iteration of such a value; also `max_iter:` and `first_iter:`,

  Metrics and variants may have slashes, too. `loss/train/top1` is the variant `top1` of the metric `loss/train`, or
  `train/top1` of `loss`. Of each task, the first of these counts that has such a value; the last slash comes first.

- `duration`: the API's `active_duration`. While a task runs, both are shown as of now, and sorted and filtered as of
  its last event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from apiserver.common.times import epoch_millis, utc_now
from apiserver.data.calls import bad_parameter
from apiserver.events.last_metrics import digest, run_time
from apiserver.services.documents.keys import escape, escape_path
from apiserver.stores.documents.query import Document, FirstNumber, Place
from apiserver.tables.table import Column, Kind

#: The columns of a table if none are named.
USUAL = (
    *("id", "name", "project", "status", "type", "user", "tags", "created", "started", "completed", "last_update"),
    *("last_iteration", "comment"),
)
#: Fields of a value in `last_metrics`, by what a column calls them.
_OF_CURVES = {
    "last": ("value", Kind.FLOAT),
    "first": ("first_value", Kind.FLOAT),
    "min": ("min_value", Kind.FLOAT),
    "max": ("max_value", Kind.FLOAT),
    "mean": ("mean_value", Kind.FLOAT),
    "count": ("count", Kind.INT),
    "min_iter": ("min_value_iteration", Kind.INT),
    "max_iter": ("max_value_iteration", Kind.INT),
    "first_iter": ("first_value_iteration", Kind.INT),
}
_KINDS = {
    **dict.fromkeys(("id", "name", "project", "status", "type", "user", "parent", "comment"), Kind.TEXT),
    **dict.fromkeys(("status_message", "status_reason", "report", "company"), Kind.TEXT),
    **dict.fromkeys(("created", "started", "completed", "published", "last_update"), Kind.DATE),
    **dict.fromkeys(("last_change", "status_changed"), Kind.DATE),
    **dict.fromkeys(("last_iteration", "active_duration", "duration"), Kind.INT),
}
_DURATION = "active_duration"
#: The fields of tasks; those below them may have any name.
_ROOTS = frozenset(
    {
        *_KINDS,
        *("tags", "system_tags", "hyperparams", "configuration", "runtime", "execution", "models", "script"),
        *("container", "output", "last_metrics", "metric_stats", "status_changed", "published", "has_x_axis_labels"),
        *("last_worker", "last_worker_report", "enqueue_status", "report_assets", "unique_metrics"),
    }
)
_LONGEST = 1024
MOST_READINGS = 8
"""At so many slashes of `metric/variant`, the last ones, the name of the metric may end."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column, and the paths of the fields in stored documents: the first one with a value counts."""

    column: Column
    paths: tuple[str, ...]

    @property
    def place(self) -> Place:
        """The column in filters and sorts."""
        return self.paths[0] if len(self.paths) == 1 else FirstNumber(self.paths)

    @property
    def needed(self) -> tuple[str, ...]:
        """The paths of all fields that the column is made of."""
        return (_DURATION, "status", "started") if self._is_duration else self.paths

    @property
    def _is_duration(self) -> bool:
        return self.paths == (_DURATION,)

    def value(self, task: Document) -> Any:
        """What the column shows of a stored task; None if the task has no such field."""
        task = {**task, **run_time(task, utc_now())} if self._is_duration else task
        show = _SHOWN[self.column.kind]
        shown = (show(value) for path in self.paths if (value := _at(path, task)) is not None)
        return next((value for value in shown if value is not None), None)


def field_of(name: str, parameter: str = "columns") -> Field:
    """The field of a column that `parameter` names; 400 if there can be none."""
    if not name or len(name) > _LONGEST:
        raise bad_parameter(parameter, f"a column has a name of up to {_LONGEST} characters")
    prefix, colon, series = name.partition(":")
    if colon and prefix in _OF_CURVES:
        if "/" not in series:
            raise bad_parameter(parameter, f"'{name[:100]}' names no curve: it should be {prefix}:metric/variant")
        field, kind = _OF_CURVES[prefix]
        readings = (f"last_metrics.{digest(metric)}.{digest(variant)}.{field}" for metric, variant in _readings(series))
        return Field(Column(name, kind), tuple(readings))
    if name.startswith("hyperparams.") and "/" in name:
        section, _, parameter = name.removeprefix("hyperparams.").partition("/")
        return Field(Column(name, Kind.TEXT), (f"hyperparams.{escape(section)}.{escape(parameter)}.value",))
    if name.partition(".")[0] not in _ROOTS:
        raise bad_parameter(parameter, f"tasks have no '{name[:100]}'; a parameter is 'hyperparams.Args/lr'")
    return Field(Column(name, _KINDS.get(name, Kind.JSON)), (_DURATION if name == "duration" else escape_path(name),))


def _readings(series: str) -> Iterator[tuple[str, str]]:
    """What `metric/variant` may stand for, as metric and variant."""
    cut = len(series)
    for _ in range(MOST_READINGS):
        cut = series.rfind("/", 0, cut)
        if cut < 0:
            return
        yield series[:cut], series[cut + 1 :]


def sort_fields(names: Sequence[str]) -> list[tuple[Place, int]]:
    """The sort order for columns; "-" before one means descending."""
    return [
        (field_of(name.removeprefix("-"), "sort").place, -1 if name.startswith("-") else 1) for name in names if name
    ]


def _at(path: str, task: Document) -> Any:
    value: Any = task
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, int) and -(2**63) <= value < 2**63 else None


_SHOWN: dict[Kind, Callable[[Any], Any]] = {
    Kind.TEXT: str,
    Kind.INT: _whole,
    Kind.FLOAT: _number,
    Kind.DATE: epoch_millis,
    Kind.JSON: orjson.dumps,
}

"""The fields of owners' documents that follow from their events: last_metrics, last_iteration, metric_stats and times.

Their values come from the event store's exact statistics. They are set, not added up. So writing them twice changes
nothing, and they can be made again at any time from what is stored.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from apiserver.common.times import seconds_since
from apiserver.events.model import SINGLE_VALUE_ITERATION, EventBatch, EventType, JsonObject, Owner, ScalarStats
from apiserver.events.monitors import is_monitor


@dataclass(slots=True)
class Touched:
    """The parts of an owner's document that are out of date."""

    series: set[tuple[str, str]] = field(default_factory=set)
    """Scalar series (metric, variant) with new points."""
    labels: dict[tuple[str, str], str] = field(default_factory=dict)
    """The labels of the x axis that came with these events."""
    last_iteration: int | None = None
    """The greatest iteration of log lines and samples. That of scalars is in their statistics."""
    samples: dict[tuple[str, EventType], int] = field(default_factory=dict)
    """The newest timestamp for each (metric, sample type)."""
    resets: set[str | None] = field(default_factory=set)
    """The document's mark of its last reset, as it was when these events came."""
    changed: bool = True
    """Whether events came. Otherwise a client has only said that the task still runs."""

    def parts(self, most: int) -> list[Touched]:
        """The same in parts. Each has at most `most` series, and at most `most` metrics of samples."""
        if len(self.series) <= most and len(self.samples) <= most:
            return [self]
        series, samples = sorted(self.series), sorted(self.samples)
        parts = []
        for start in range(0, max(len(series), len(samples)), most):
            names = series[start : start + most]
            parts.append(
                Touched(
                    set(names),
                    {name: self.labels[name] for name in names if name in self.labels},
                    self.last_iteration,
                    {key: self.samples[key] for key in samples[start : start + most]},
                    self.resets,
                    self.changed,
                )
            )
        return parts

    def saw_sample(self, metric: str, variant: str, type: EventType, iter: int, timestamp: int) -> None:
        """Note a plot, an image or a vector, or the newest one of a series."""
        if not is_monitor(metric, variant):
            self.saw_iteration(iter)
        self.samples[metric, type] = max(timestamp, self.samples.get((metric, type), timestamp))

    def saw_iteration(self, iter: int) -> None:
        """Note an iteration that was reported. Single values have none."""
        if iter != SINGLE_VALUE_ITERATION and (self.last_iteration is None or iter > self.last_iteration):
            self.last_iteration = iter

    def merge(self, other: Touched) -> None:
        """Add all that `other` has."""
        self.series |= other.series
        self.labels |= other.labels
        self.resets |= other.resets
        self.changed |= other.changed
        if other.last_iteration is not None:
            self.saw_iteration(other.last_iteration)
        for key, timestamp in other.samples.items():
            self.samples[key] = max(timestamp, self.samples.get(key, timestamp))


def touched_by(batch: EventBatch) -> dict[Owner, Touched]:
    """The parts of documents that a batch puts out of date, by owner."""
    owners: dict[Owner, Touched] = {}
    scalars = batch.scalars
    of_owner = [owners.setdefault(owner, Touched()) for owner in scalars.owners]
    names = list(zip(scalars.metrics, scalars.variants, strict=True))
    if len(of_owner) == 1:
        of_owner[0].series.update(names)
    else:
        for number, name in zip(scalars.owner, names, strict=True):
            of_owner[number].series.add(name)
    if scalars.labels.count(None) < len(names):
        for number, name, label in zip(scalars.owner, names, scalars.labels, strict=True):
            if label is not None:
                of_owner[number].labels[name] = label
    for logs in batch.logs:
        touched = owners.setdefault(logs.owner, Touched())
        for iter in {iter for iter in logs.iters if iter is not None}:
            touched.saw_iteration(iter)
    for sample in batch.samples:
        touched = owners.setdefault(sample.owner, Touched())
        touched.saw_sample(sample.metric, sample.variant, sample.type, sample.iter, sample.timestamp)
    return owners


def update_of(
    touched: Touched, stats: Iterable[ScalarStats], now: str, *, labelled: bool = True
) -> tuple[JsonObject, JsonObject]:
    """The fields to set, and those to raise to a value, so that an owner's document is up to date.

    `labelled`: the document may have labels of the x axis, which must stay. Without labels, each series is set as a
    whole, which takes a fifth of the time.
    """
    values: dict[str, Any] = {"last_update": now, **({"last_change": now} if touched.changed else {})}
    reached = Touched(last_iteration=touched.last_iteration)
    for stat in sorted(stats, key=lambda stat: (digest(stat.metric), digest(stat.variant))):  # as MongoDB sets fields
        if not is_monitor(stat.metric, stat.variant):
            reached.saw_iteration(stat.max_iter)
        path = f"last_metrics.{digest(stat.metric)}.{digest(stat.variant)}"
        if labelled or touched.labels:
            values |= {f"{path}.{name}": value for name, value in _summary(stat).items()}
        else:
            values[path] = _summary(stat)
    if touched.labels:
        values["has_x_axis_labels"] = True
    for (metric, variant), label in touched.labels.items():
        values[f"last_metrics.{digest(metric)}.{digest(variant)}.x_axis_label"] = label
    for (metric, type), timestamp in touched.samples.items():
        path = f"metric_stats.{digest(metric)}"
        values[f"{path}.metric"] = metric
        values[f"{path}.event_stats_by_type.{type.value}.last_update"] = timestamp
    return values, {} if reached.last_iteration is None else {"last_iteration": reached.last_iteration}


def run_time(task: Mapping[str, Any], now: str) -> JsonObject:
    """`active_duration`: for how many seconds a task has been running; nothing if it does not run."""
    if task.get("status") != "in_progress" or not task.get("started"):
        return {}
    return {"active_duration": seconds_since(task["started"], now)}


@lru_cache(maxsize=65536)
def digest(name: str) -> str:
    """The key of a metric or variant in `last_metrics`, as ClearML clients compute it too."""
    return hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()


def _summary(stat: ScalarStats) -> JsonObject:
    return {
        "metric": stat.metric,
        "variant": stat.variant,
        "value": _finite(stat.last_value),
        "min_value": stat.min_value,
        "min_value_iteration": stat.min_value_iter,
        "max_value": stat.max_value,
        "max_value_iteration": stat.max_value_iter,
        "first_value": _finite(stat.first_value),
        "first_value_iteration": stat.first_iter,
        "count": stat.count,
        "mean_value": _finite(stat.sum / stat.finite_count) if stat.finite_count else None,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None

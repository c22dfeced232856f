"""What batches change in their owners' documents."""

from __future__ import annotations

import math

import numpy as np
import pytest

from apiserver.events.last_metrics import Touched, digest, touched_by, update_of
from apiserver.events.model import (
    SINGLE_VALUE_ITERATION,
    EventBatch,
    EventType,
    LogColumns,
    Owner,
    Sample,
    ScalarColumns,
    Scalars,
    ScalarStats,
)

TASK = Owner("acme", "t1")


def points(metric: str, iters: list[int], label: str | None = None) -> ScalarColumns:
    column = np.array(iters, dtype=np.int64)
    return ScalarColumns(TASK, metric, "v", "w", column, column, column.astype(np.float64), label)


def stats(**changes: object) -> ScalarStats:
    fields: dict[str, object] = {
        "owner": TASK, "metric": "loss", "variant": "train", "count": 4, "finite_count": 3, "min_iter": 1,
        "max_iter": 9,
        "min_timestamp": 0, "max_timestamp": 9, "first_value": 5.0, "first_iter": 1, "last_value": 2.0, "last_iter": 9,
        "min_value": 1.0, "min_value_iter": 3, "max_value": 6.0, "max_value_iter": 4, "sum": 9.0,
    }  # fmt: skip
    return ScalarStats(**{**fields, **changes})  # type: ignore[arg-type]


def test_the_last_iteration_is_the_greatest_of_any_event_but_single_values() -> None:
    batch = EventBatch(0, Scalars.of([points("a", [3, 7])]))
    scalars = [stats(max_iter=7), stats(metric="b", max_iter=SINGLE_VALUE_ITERATION)]

    def reached() -> object:
        return update_of(touched_by(batch)[TASK], scalars, "now")[1]["last_iteration"]

    assert reached() == 7
    batch.samples.append(Sample(TASK, EventType.PLOT, "p", "v", 12, "", 0, b"{}"))
    assert reached() == 12
    batch.logs.append(
        LogColumns(TASK, np.zeros(2, dtype=np.int64), ["", ""], ["", ""], ["", ""], [20, None], ["", ""], ["", ""])
    )
    assert reached() == 20


def test_only_single_values_leave_the_last_iteration_alone() -> None:
    assert update_of(Touched(), [stats(max_iter=SINGLE_VALUE_ITERATION)], "now")[1] == {}


@pytest.mark.parametrize("metric", [":monitor:machine", ":monitor:gpu:rank1"])
def test_monitors_leave_the_last_iteration_alone_and_have_a_summary(metric: str) -> None:
    plot = Sample(TASK, EventType.PLOT, metric, "v", 9_000, "", 0, b"{}")
    touched = touched_by(EventBatch(0, Scalars.of([points(metric, [9_000]), points("loss", [9])]), samples=[plot]))[
        TASK
    ]
    values, reached = update_of(touched, [stats(), stats(metric=metric, max_iter=9_000)], "now")
    assert reached == {"last_iteration": 9}
    assert values[f"last_metrics.{digest(metric)}.{digest('train')}.value"] == 2.0
    assert values[f"metric_stats.{digest(metric)}.metric"] == metric


def test_a_series_summary_is_set_field_by_field() -> None:
    values, reached = update_of(Touched(last_iteration=9), [stats()], "now")
    path = f"last_metrics.{digest('loss')}.{digest('train')}"
    assert values[f"{path}.value"] == 2.0
    assert values[f"{path}.mean_value"] == 3.0
    assert values[f"{path}.count"] == 4
    assert (values[f"{path}.min_value"], values[f"{path}.min_value_iteration"]) == (1.0, 3)
    assert values["last_change"] == "now"
    assert reached == {"last_iteration": 9}


def test_what_is_not_finite_is_null() -> None:
    values, _ = update_of(
        Touched(), [stats(last_value=math.nan, finite_count=0, min_value=None, max_value=None, sum=0.0)], "now"
    )
    path = f"last_metrics.{digest('loss')}.{digest('train')}"
    assert [values[f"{path}.{name}"] for name in ("value", "mean_value", "min_value")] == [None, None, None]


def test_touches_add_up() -> None:
    def plot(iter: int) -> Sample:
        return Sample(TASK, EventType.PLOT, "p", "v", iter, "", 0, b"{}")

    first = touched_by(EventBatch(0, Scalars.of([points("a", [1], label="epochs")]), samples=[plot(2)]))[TASK]
    first.merge(touched_by(EventBatch(0, Scalars.of([points("b", [5])]), samples=[plot(5)]))[TASK])
    assert first.series == {("a", "v"), ("b", "v")}
    assert first.last_iteration == 5
    assert update_of(first, [], "now")[0][f"last_metrics.{digest('a')}.{digest('v')}.x_axis_label"] == "epochs"


def test_samples_tell_when_their_metric_last_had_them() -> None:
    batch = EventBatch(0, samples=[Sample(TASK, EventType.PLOT, "p", "v", 1, "", stamp, b"{}") for stamp in (5, 9, 7)])
    values = update_of(touched_by(batch)[TASK], [], "now")[0]
    assert values[f"metric_stats.{digest('p')}.event_stats_by_type.plot.last_update"] == 9
    assert values[f"metric_stats.{digest('p')}.metric"] == "p"


def test_series_are_set_in_the_order_of_their_digests() -> None:
    series = [stats(metric=metric, variant=variant) for metric in ("a", "b", "c") for variant in ("x", "y")]
    fields = [path for path in update_of(Touched(), series, "now")[0] if path.endswith(".count")]
    assert fields == sorted(fields)
    assert len(fields) == 6


def test_labels_are_set_beside_their_series_and_the_document_says_that_there_are_some() -> None:
    (touched,) = touched_by(EventBatch(0, Scalars.of([points("loss", [1], "epochs"), points("acc", [1])]))).values()
    fields = update_of(touched, [], "now")[0]
    assert fields[f"last_metrics.{digest('loss')}.{digest('v')}.x_axis_label"] == "epochs"
    assert fields["has_x_axis_labels"] is True
    assert "has_x_axis_labels" not in update_of(Touched(), [stats()], "now")[0]

"""At what x the points of W&B's series are: what W&B shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apiserver.transfer.importing.runs.model import Again, Points
from tests.transfer.importing.runs.tfevents import message
from tests.transfer.importing.runs.wandb_logs import (
    TENSORBOARD,
    curves,
    defined,
    history,
    item,
    last_position,
    parts_of,
)


def test_x_is_what_the_definitions_say(tmp_path: Path) -> None:
    """Those that come late count, too; the longest glob that fits; a definition without a step is `_step`."""
    parts = parts_of(
        tmp_path,
        [
            defined("*", "trainer/global_step"),
            defined("val/*", "epoch"),
            defined("plain"),
            *(
                history(
                    n, {"loss": n, "val/acc": n, "plain": n, "n.x": n, "trainer/global_step": 50 * n, "epoch": 2 * n}
                )
                for n in range(3)
            ),
            defined("n.x", "epoch"),
        ],
    )
    by_fifty, by_two, by_one = ([(step * n, float(n)) for n in range(3)] for step in (50, 2, 1))
    assert curves(parts) == {
        "loss/loss": by_fifty,
        "val/acc": by_two,
        "plain/plain": by_one,
        "n.x/n.x": by_two,
        "trainer/global_step": [(n, 50.0 * n) for n in range(3)],
        "epoch/epoch": [(50 * n, 2.0 * n) for n in range(3)],
    }


def test_points_without_their_x_have_the_last_one_or_stay_at_their_step(tmp_path: Path) -> None:
    records = [
        defined("synced", "epoch"),
        defined("alone", "epoch", sync=False),
        history(0, {"synced": 0}),
        history(1, {"epoch": 10, "synced": 1, "alone": 1}),
        history(2, {"epoch": float("nan"), "synced": 2, "alone": 2}),
        history(3, {"synced": 3, "alone": 3}),
    ]
    found = curves(parts_of(tmp_path, records))
    assert found["synced/synced"] == [(0, 0.0), (10, 1.0), (10, 2.0), (10, 3.0)]
    assert found["alone/alone"] == [(10, 1.0), (2, 2.0), (3, 3.0)]


@pytest.mark.parametrize("odd", ["text", [1], None, {"b": "text"}, {"b": None}])
def test_what_is_no_point_has_no_x(tmp_path: Path, odd: Any) -> None:
    """It is not what numbers the points of its series."""
    series = "a.b" if isinstance(odd, dict) else "a"
    records = [defined("*", "epoch"), history(0, {"epoch": 50, series: 1}), history(1, {"epoch": 0.5, "a": odd})]
    assert curves(parts_of(tmp_path, records))[f"{series}/{series}"] == [(50, 1.0)]


def test_a_value_that_is_nested_deep_costs_only_itself(tmp_path: Path) -> None:
    records = [defined("*", "n.epoch"), *(history(step, {"loss": step}) for step in (1, 2))]
    odd = message((1, "odd"), (16, '{"list": ' + "[" * 1000 + "]" * 1000 + "}"))
    values = [item("n", {"epoch": 7}), item("loss", 3), item(["_step"], 3)]
    records.append(message((1, 3), (2, message((1, odd), *values))))
    assert curves(parts_of(tmp_path, records))["loss/loss"] == [(1, 1.0), (2, 2.0), (7, 3.0)]


def test_points_at_decimals_are_numbered_and_their_x_stays_readable(tmp_path: Path) -> None:
    records = [
        defined("*", "epoch"),
        *(history(n, {"epoch": n / 4, "train/loss": n, **({"whole": n} if n % 4 == 0 else {})}) for n in range(9)),
    ]
    parts = parts_of(tmp_path, records)
    assert curves(parts) == {
        "epoch/epoch": [(n, n / 4) for n in range(9)],
        "train/loss": [(n, float(n)) for n in range(9)],
        "x: epoch/train/loss": [(n, n / 4) for n in range(9)],
        "whole/whole": [(0, 0.0), (1, 4.0), (2, 8.0)],
    }
    more = [history(9, {"epoch": 2.25, "train/loss": 9, "new": 1, "whole": 9})]
    parts = parts_of(tmp_path, [*records, history(9, {"epoch": 2.25, "train/loss": 9, "new": 1})], last_position(parts))
    assert not [part for part in parts if isinstance(part, Again)]
    assert curves(parts) == {
        "epoch/epoch": [(9, 2.25)],
        "train/loss": [(9, 9.0)],
        "x: epoch/train/loss": [(9, 2.25)],
        "new/new": [(0, 1.0)],
        "x: epoch/new": [(0, 2.25)],
    }
    parts = parts_of(tmp_path, [*records, *more], last_position(parts_of(tmp_path, records)))
    assert parts[0] == Again(cleared=True), "a series that was whole is not any more"
    assert curves(parts)["whole/whole"] == [(0, 0.0), (1, 4.0), (2, 8.0), (3, 9.0)]


def test_a_definition_that_comes_after_points_were_given_begins_again(tmp_path: Path) -> None:
    records = [history(n, {"epoch": 10 * n, "x": n}) for n in range(3)]
    position = last_position(parts_of(tmp_path, records))
    parts = parts_of(tmp_path, [*records, defined("x", "epoch")], position)
    assert parts[0] == Again(cleared=True)
    assert curves(parts)["x/x"] == [(0, 0.0), (10, 1.0), (20, 2.0)]
    parts = parts_of(tmp_path, [*records, defined("x", "epoch"), defined("x", "epoch")], last_position(parts))
    assert not [part for part in parts if isinstance(part, Again | Points)], "nothing new is said"
    assert parts_of(tmp_path, records, '{"offline-run-20261123_065159-id7": 7}')[0] == Again(cleared=True), (
        "an old form"
    )


def test_the_steps_of_tensorboard_are_x(tmp_path: Path) -> None:
    records = [
        TENSORBOARD,
        history(0, {"global_step": 0, "a/loss": 1}),
        history(1, {"global_step": 10, "a/loss": 2}),
        history(2, {"a/global_step": 20, "a/loss": 3, "own": 1}),
    ]
    assert curves(parts_of(tmp_path, records)) == {
        "global_step/global_step": [(0, 0.0), (1, 10.0)],
        "a/global_step": [(2, 20.0)],
        "a/loss": [(0, 1.0), (10, 2.0), (20, 3.0)],
        "own/own": [(2, 1.0)],
    }

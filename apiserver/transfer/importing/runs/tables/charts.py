"""The CSV of a chart, as the pages of W&B write it: the columns of each series are named by its run.

Step, first - train/loss, first - train/loss__MIN, first - train/loss__MAX, first - _step, first - _step__MIN, …
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_BETWEEN = " - "
_STEP = "_step"
_ENDS = ("__MIN", "__MAX")


@dataclass(frozen=True, slots=True)
class Chart:
    """The columns of a chart."""

    x: str
    series: dict[str, dict[str, str]]
    """By run and metric, the column with the values."""
    steps: dict[str, str]
    """By run, the column with its steps, if there is one."""


def chart_of(names: Sequence[str]) -> Chart | None:
    """The columns of a chart of W&B; None if the names are not all of such a one."""
    others = set(names[1:])
    bases = [name for name in names[1:] if not name.endswith(_ENDS)]
    if not bases or others != {base + end for base in bases for end in ("", *_ENDS)}:
        return None
    if any(_BETWEEN not in base for base in bases):
        return None
    steps = {base.removesuffix(_BETWEEN + _STEP): base for base in bases if base.endswith(_BETWEEN + _STEP)}
    series: dict[str, dict[str, str]] = {}
    for base in bases:
        if base not in steps.values():
            run = _run(base, steps)
            series.setdefault(run, {})[base.removeprefix(run + _BETWEEN)] = base
    return Chart(names[0], series, steps)


def _run(base: str, runs: dict[str, str]) -> str:
    """The run of a column: one that has steps, or what is before the last " - ", as names of runs may have it, too."""
    known = [run for run in runs if base.startswith(run + _BETWEEN)]
    return max(known, key=len, default=base.rpartition(_BETWEEN)[0])

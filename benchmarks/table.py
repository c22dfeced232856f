"""The table of a run: the figures, the limits and peers beside each, and whether it meets its bars."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator

from benchmarks.figures import Figure

_HEAD = ("figure", "value", "limit or peer in the same run", "its value", "ratio", "bar", "")
_LEFT = {0, 2, 5, 6}

Range = tuple[float, float]
"""The least and the greatest number that a ratio may have."""


class Table:
    """Values by the keys of their figures. Each value is also printed on standard error at once."""

    def __init__(self, figures: Iterable[Figure]) -> None:
        self.figures = {figure.key: figure for figure in figures}
        self.values: dict[str, float] = {}
        self.beside: dict[str, dict[str, float]] = {}
        self.ranges: dict[tuple[str, str], Range] = {}

    def add(self, figure: Figure) -> None:
        """Add another figure at the end."""
        self.figures[figure.key] = figure

    def put(
        self,
        key: str,
        value: float,
        beside: dict[str, float] | None = None,
        ranges: dict[str, Range] | None = None,
    ) -> None:
        """Note the value of a figure. `beside`: limits and peers by name, in the same unit.

        `ranges`: between which numbers the ratios to some of these are, as far as that is known.
        """
        figure = self.figures[key]
        self.values[key] = value
        self.ranges |= {(key, name): of_ratio for name, of_ratio in (ranges or {}).items()}
        _tell(f"{figure.name}: {number(value)} {figure.unit}")
        self.compare(key, beside or {})

    def compare(self, key: str, beside: dict[str, float]) -> None:
        """Note further limits and peers of a figure."""
        figure = self.figures[key]
        for name, value in beside.items():
            self.beside.setdefault(key, {})[name] = value
            _tell(f"    {name}: {number(value)} {figure.unit}")

    def text(self) -> str:
        """The table in columns."""
        rows = [_HEAD, *self._rows()]
        widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
        lines = ["  ".join(_padded(row, widths)).rstrip() for row in rows]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join(lines) + "\n"

    def markdown(self) -> str:
        """The table as Markdown."""
        rules = tuple("---" if column in _LEFT else "---:" for column in range(len(_HEAD)))
        return "".join(f"| {' | '.join(row)} |\n" for row in (_HEAD, rules, *self._rows()))

    def _rows(self) -> Iterator[tuple[str, ...]]:
        """A row for each figure with its first limit or peer, and one for each further limit or peer."""
        for figure in self.figures.values():
            if figure.key not in self.values:
                continue
            value, beside = self.values[figure.key], self.beside.get(figure.key, {})
            compared = [
                (name, number(other), ratio(value, other) + _in_range(self.ranges.get((figure.key, name))))
                for name, other in beside.items()
            ] or [("", "", "")]
            bars = ", ".join(map(str, figure.bars))
            yield figure.name, f"{number(value)} {figure.unit}", *compared[0], bars, _verdict(figure, value, beside)
            for more in compared[1:]:
                yield "", "", *more, "", ""


def median_range(values: list[float]) -> Range:
    """Between which of the values the median of all that could be measured lies, at 95 %."""
    ordered, half = sorted(values), len(values) / 2
    away = math.sqrt(len(values))
    return ordered[max(math.floor(half - away), 0)], ordered[min(math.ceil(half + away), len(values)) - 1]


def number(value: float) -> str:
    """A value with three digits, such as 0.123, 12.3 or 1,234."""
    if value >= 1000:
        return f"{value:,.0f}"
    decimals = next((places for least, places in ((100, 0), (10, 1), (0.1, 2)) if abs(value) >= least), 3)
    return f"{value:.{decimals}f}"


def ratio(value: float, other: float) -> str:
    """The ratio of a value to another, such as "2.00 ×" or "1/2.00"."""
    if not value or not other:
        return ""
    return f"{number(value / other)} ×" if value >= other else f"1/{number(other / value)}"


def _in_range(of_ratio: Range | None) -> str:
    return "" if of_ratio is None else f" ({of_ratio[0]:.3f}–{of_ratio[1]:.3f})"


def _verdict(figure: Figure, value: float, beside: dict[str, float]) -> str:
    held = [bar.holds(value, beside) for bar in figure.bars]
    if False in held:
        return "misses"
    return "ok" if held and None not in held else ""


def _padded(row: Iterable[str], widths: list[int]) -> list[str]:
    return [
        cell.ljust(width) if column in _LEFT else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]


def _tell(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()

"""The numbers in the cells of a table's column: values, steps and times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from apiserver.events.model import Float64Array, Int64Array
from apiserver.transfer.importing.runs import times

Bools = np.typing.NDArray[np.bool_]
_INFINITIES = ("inf", "infinity")
#: The texts that Keras, R, pandas, spreadsheets and databases write into an empty cell.
_NOTHING = frozenset({"NA", "N/A", "n/a", "#N/A", "<NA>", "NULL", "Null", "null", "None", "-"})


def present(column: Sequence[Any]) -> Bools:
    """Which cells have something in them."""
    if isinstance(column, np.ndarray):
        return np.ones(len(column), bool)
    return np.array([one is not None and not _is_nothing(one) for one in column], bool)


def _is_nothing(cell: Any) -> bool:
    return isinstance(cell, str) and cell.strip() in _NOTHING


def floats(column: Sequence[Any]) -> tuple[Float64Array, Bools]:
    """The numbers of a column, and which rows have one. A duration such as "00:18" is its seconds."""
    if isinstance(column, np.ndarray):
        return column.astype(np.float64), np.ones(len(column), bool)
    try:
        numbers = np.array(list(map(float, column)), np.float64)
        is_number = np.ones(len(column), bool)
        for row in np.flatnonzero(np.isinf(numbers)).tolist():
            is_number[row] = _float(column[row]) is not None
        return numbers, is_number
    except (ValueError, TypeError, OverflowError):
        parsed = [_float(cell) for cell in column]
        values = np.array([0.0 if number is None else number for number in parsed], np.float64)
        return values, np.array([number is not None for number in parsed], bool)


def _float(value: Any) -> float | None:
    """A number; a text such as 1e400 is none, as only the word means infinity."""
    if value is None:
        return None
    try:
        number = float(value)
    except ValueError:
        return times.seconds_of(value) if isinstance(value, str) else None
    except (TypeError, OverflowError):
        return None
    is_too_large = (
        math.isinf(number) and isinstance(value, str) and value.strip().lstrip("+-").lower() not in _INFINITIES
    )
    return None if is_too_large else number


@dataclass(slots=True)
class Steps:
    """The steps in a column, row by row."""

    whole: Int64Array
    """0 where there is none, or a decimal."""
    exact: Float64Array
    known: Bools
    """Which rows have a step."""

    @property
    def decimal(self) -> Bools:
        """Which steps are no whole numbers."""
        decimal: Bools = self.known & (self.exact != np.floor(self.exact))
        return decimal


def steps(column: Sequence[Any]) -> Steps:
    """The steps of a column: whole numbers of 64 bits, and decimals. A float such as 3.0 counts as whole."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "i":
        return _steps(column.astype(np.int64))
    if set(map(type, column)) <= {str, int}:
        try:
            return _steps(np.array(list(map(int, column)), np.int64))
        except (ValueError, OverflowError):
            pass
    found = [_step(one) for one in column]
    whole = np.array([one if isinstance(one, int) else 0 for one in found], np.int64)
    exact = np.array([0.0 if one is None else one for one in found], np.float64)
    return Steps(whole, exact, np.array([one is not None for one in found], bool))


def _steps(whole: Int64Array) -> Steps:
    return Steps(whole, whole.astype(np.float64), np.ones(len(whole), bool))


def _step(value: Any) -> int | float | None:
    if value is None or isinstance(value, bool | np.bool_):
        return None
    try:
        number = int(value) if isinstance(value, str | int | np.integer) else float(value)
    except (ValueError, TypeError, OverflowError):
        try:
            number = float(value)
        except (ValueError, TypeError, OverflowError):
            return None
    if not -(2**63) <= number < 2**63:  # also NaN
        return None
    return int(number) if number == int(number) else number


def moments(column: Sequence[Any]) -> tuple[Int64Array, Bools]:
    """The times of a column, and which rows have something else. See the module `times`."""
    values, are_numbers = floats(column)
    millis = times.believed(np.where(are_numbers, values, np.nan))
    for row in np.flatnonzero(~are_numbers).tolist():
        if column[row] is not None:
            millis[row] = times.of_text(str(column[row]))
    return millis, present(column) & ~(are_numbers & np.isnan(values)) & (millis == times.UNKNOWN)

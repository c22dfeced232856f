"""Tables: columns with names and kinds, and their rows in batches, so that a table may be larger than memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class Kind(StrEnum):
    """What the values of a column are. Any of them may be missing (None)."""

    TEXT = "text"
    INT = "int"
    """64-bit integers."""
    FLOAT = "float"
    """64-bit floats, all bits of them."""
    TIME = "time"
    """Epoch milliseconds, and so in text, too, as in events."""
    DATE = "date"
    """Epoch milliseconds, and in text a date such as 2026-11-21T08:02:12.615Z, as in documents."""
    FLAG = "flag"
    JSON = "json"
    """Any JSON, as bytes."""


class Column(NamedTuple):
    """The name of a column, and what its values are."""

    name: str
    kind: Kind


class Repeated(NamedTuple):
    """A column of texts of which there are few different ones: row n has the text `names[codes[n]]`."""

    codes: npt.NDArray[np.int32]
    names: Sequence[str]


#: The values of a column: arrays of numbers without a missing one, or a list.
Values = npt.NDArray[np.int64] | npt.NDArray[np.float64] | Repeated | list[Any]


class Batch(NamedTuple):
    """Some rows: for each column of the table, as many values."""

    rows: int
    columns: Sequence[Values]

    def parts(self, most: int) -> Iterator[Batch]:
        """The same rows, up to `most` at a time; nothing if there are none."""
        if 0 < self.rows <= most:
            yield self
            return
        for start in range(0, self.rows, most):
            stop = min(start + most, self.rows)
            yield Batch(stop - start, [_part(values, start, stop) for values in self.columns])


def _part(values: Values, start: int, stop: int) -> Values:
    if isinstance(values, Repeated):
        return Repeated(values.codes[start:stop], values.names)
    return values[start:stop]


@dataclass(slots=True)
class Table:
    """A table. `about` says where it is from.

    `batches` is closed at the end, also if nobody takes the rest.
    """

    columns: Sequence[Column]
    batches: AsyncGenerator[Batch, None]
    about: Mapping[str, str] = field(default_factory=dict)


async def once(*columns: list[Any]) -> AsyncGenerator[Batch, None]:
    """The batches of a table that is in memory, column by column."""
    yield Batch(len(columns[0]) if columns else 0, columns)

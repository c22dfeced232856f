"""Curves as plain numbers, for charts: a page in a browser needs no parsing, and 200 curves come in milliseconds.

The answer is a sequence of blocks. A block is a header and columns of numbers, all little-endian:

    uint32          bytes of the header, a multiple of 8 less 4
    header          JSON, filled up with spaces
    columns         of each series after the other: x, then each of `columns`

The header is `{"columns": ["mean", …], "bytes": 4, "series": [{"metric": …, "variant": …, "rows": 100, "x": …}, …]}`.
A number of a column takes `bytes` bytes, as a 32-bit or a 64-bit float. A block has 64-bit floats, also if 32-bit ones
were asked for, where those would change the look of a curve: 1e300 would be infinite, and 1e12 + 1 would be 1e12. With
`"x": [0, 250]`, x are 0, 250, 500 and so on, and are not among the columns. With `"x": null` they are, as 64-bit
floats. Columns begin at multiples of 8 bytes.

For example, two series with x 0, 10, 20 and 5, 6, 9, of which "mean" is asked for as 32-bit floats:

    header                                 … "series": [{…, "rows": 3, "x": [0, 10]}, {…, "rows": 3, "x": null}]
    3 × 4 bytes, 4 bytes of nothing        mean of the first
    3 × 8 bytes                            x of the second
    3 × 4 bytes, 4 bytes of nothing        mean of the second
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import orjson

from apiserver.tables.table import Batch, Column, Kind, Repeated

_FLOAT32 = np.finfo(np.float32)


def block(columns: Sequence[Column], batch: Batch, *, double: bool) -> bytes:
    """The batch as a block; a batch without rows is nothing. The first column of numbers is x."""
    if not batch.rows:
        return b""
    names = [(c.name, cast(Repeated, v)) for c, v in zip(columns, batch.columns, strict=True) if c.kind is Kind.TEXT]
    numbers = [(c.name, cast(Any, v)) for c, v in zip(columns, batch.columns, strict=True) if c.kind is not Kind.TEXT]
    x, values = np.asarray(numbers[0][1]), numbers[1:]
    starts = _starts([codes for _, (codes, _) in names])
    double = double or not all(_narrow_enough(np.asarray(column), starts) for _, column in values)
    type = np.dtype("<f8" if double else "<f4")
    series, parts = [], []
    for start, stop in zip(starts, [*starts[1:], batch.rows], strict=True):
        even = _even(x[start:stop])
        said = {name: texts[int(codes[start])] for name, (codes, texts) in names}
        series.append({**said, "rows": stop - start, "x": even})
        if even is None:
            parts.append(x[start:stop].astype("<f8").tobytes())
        parts += [_filled(column[start:stop].astype(type).tobytes(), b"\0") for _, column in values]
    head = {"columns": [name for name, _ in values], "bytes": type.itemsize, "series": series}
    header = _filled(orjson.dumps(head), b" ", 4)
    return b"".join([len(header).to_bytes(4, "little"), header, *parts])


def _starts(codes: Sequence[Any]) -> list[int]:
    """The rows at which a series begins: one of the names is another one than before."""
    changes = np.zeros(len(codes[0]), bool)
    changes[0] = True
    for one in codes:
        changes[1:] |= one[1:] != one[:-1]
    return np.flatnonzero(changes).tolist()


def _narrow_enough(column: Any, starts: list[int]) -> bool:
    """Whether each series looks the same as 32-bit floats: they hold its values, in steps of a thousandth of its span.

    For example, 3e9 to 3e9 + 5000 would be in steps of 256, a twentieth of 5000: that is not narrow enough.
    """
    if column.dtype.kind != "f":
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.where(np.isfinite(column), column, np.nan)
        least, greatest = np.fmin.reduceat(finite, starts), np.fmax.reduceat(finite, starts)
        size, span = np.maximum(np.abs(least), np.abs(greatest)), greatest - least
        coarse = (span > 0) & (size * _FLOAT32.eps > span / 1000)
        return not bool(((size > _FLOAT32.max) | coarse).any())


def _even(x: Any) -> list[int] | None:
    """The first x, and the step from each to the next; None if steps differ."""
    if len(x) == 1:
        return [int(x[0]), 1]
    first, step = int(x[0]), int(x[1]) - int(x[0])
    if first + step * (len(x) - 1) != int(x[-1]) or not 0 < step < 2**53 or abs(first) > 2**53:
        return None
    return [first, step] if bool((np.diff(x) == step).all()) else None


def _filled(content: bytes, by: bytes, beside: int = 0) -> bytes:
    """The content, filled up so that it has, with `beside` bytes before it, a multiple of 8 bytes."""
    return content + by * (-(len(content) + beside) % 8)

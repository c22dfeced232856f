"""Curves as plain numbers, for charts: a page in a browser needs no parsing, and 200 curves come in milliseconds.

The answer is a sequence of blocks. A block is a header and columns of numbers, all little-endian:

    uint32          bytes of the header, a multiple of 8 less 4
    header          JSON, filled up with spaces
    columns         of each series after the other: x, then each of `columns`

The header is `{"columns": ["mean", …], "bytes": 4, "series": [{"metric": …, "variant": …, "rows": 100, "x": …}, …]}`.
A number of a column takes `bytes` bytes, as a 32-bit or a 64-bit float. With `"x": [0, 250]`, x are 0, 250, 500 and so
on, and are not among the columns. With `"x": null` they are, as 64-bit floats. Columns begin at multiples of 8 bytes.

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

from apiserver.data.tables import Batch, Column, Kind, Repeated


def block(columns: Sequence[Column], batch: Batch, *, double: bool) -> bytes:
    """The batch as a block; a batch without rows is nothing. The first column of numbers is x."""
    if not batch.rows:
        return b""
    names = [(c.name, cast(Repeated, v)) for c, v in zip(columns, batch.columns, strict=True) if c.kind is Kind.TEXT]
    numbers = [(c.name, cast(Any, v)) for c, v in zip(columns, batch.columns, strict=True) if c.kind is not Kind.TEXT]
    x, values = np.asarray(numbers[0][1]), numbers[1:]
    type = np.dtype("<f8" if double else "<f4")
    series, parts = [], []
    starts = _starts([codes for _, (codes, _) in names])
    for start, stop in zip(starts, [*starts[1:], batch.rows], strict=True):
        even = _even(x[start:stop])
        said = {name: texts[int(codes[start])] for name, (codes, texts) in names}
        series.append({**said, "rows": stop - start, "x": even})
        if even is None:
            parts.append(x[start:stop].astype("<f8").tobytes())
        with np.errstate(over="ignore"):
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

"""Tables as JSON, as JSON lines and as CSV.

The values of a column are written all at once, as a list of texts. The texts of all columns, and what stands between
them, are put into one list and joined once. That takes a quarter of the time of writing each row by itself. Numbers
have as many digits as it takes to read the same bits again.

JSON knows no NaN and no infinities: they are the texts "NaN", "Infinity" and "-Infinity", which `float` of Python and
`Number` of JavaScript read. In CSV they are NaN, inf and -inf. A missing value is null, in CSV nothing; an empty text
is "" there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import orjson

from apiserver.common.times import iso_millis
from apiserver.tables.table import Batch, Column, Kind, Repeated, Values

#: Spreadsheets take a text that begins with one of these for a formula, and run it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
#: Texts that begin so and are numbers: parameters are texts, and −0.5 has to be a number for whoever reads the table.
_NUMBER = re.compile(r"[+-](\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MUST_BE_QUOTED = frozenset(',;"\r\n')
#: NaN, ∞ and −∞.
_IN_JSON, _IN_CSV = ('"NaN"', '"Infinity"', '"-Infinity"'), ("NaN", "inf", "-inf")

Text = Callable[[str], str]


def json_rows(columns: Sequence[Column], batch: Batch, between: str) -> bytes:
    """Each row as an object, with a text between them. There must be at least one row."""
    before = [f",{_dumps(column.name)}:" for column in columns]
    before[0] = f"}}{between}{{{before[0][1:]}"
    cells = [_json(column.kind, values) for column, values in zip(columns, batch.columns, strict=True)]
    return f"{_joined(before, cells)[len(between) + 1 :]}}}".encode()


def csv_head(columns: Sequence[Column], *, plain: bool) -> bytes:
    """The line with the names of the columns."""
    text = _csv_text(plain)
    return f"{','.join(text(column.name) for column in columns)}\r\n".encode()


def csv_lines(columns: Sequence[Column], batch: Batch, *, plain: bool) -> bytes:
    """The rows as lines. Texts that spreadsheets would run get a quote in front, unless they should stay `plain`.

    There must be at least one row.
    """
    text = _csv_text(plain)
    cells = [_csv(column.kind, values, text) for column, values in zip(columns, batch.columns, strict=True)]
    before = ["\r\n"] + [","] * (len(columns) - 1)
    return f"{_joined(before, cells)[2:]}\r\n".encode()


def _joined(before: Sequence[str], cells: Sequence[list[str]]) -> str:
    """The cells row by row, with `before[n]` before cell n of each row."""
    texts = [part for text in before for part in (text, "")] * len(cells[0])
    for n, column in enumerate(cells):
        texts[2 * n + 1 :: 2 * len(cells)] = column
    return "".join(texts)


def _dumps(value: Any) -> str:
    return orjson.dumps(value).decode()


def _json(kind: Kind, values: Values) -> list[str]:
    if isinstance(values, Repeated):
        return _repeated(values, _dumps)
    if isinstance(values, np.ndarray):
        return _numbers(values, _IN_JSON)
    match kind:
        case Kind.JSON:
            return ["null" if value is None else value.decode() for value in values]
        case Kind.DATE:
            return ["null" if value is None else f'"{iso_millis(value)}"' for value in values]
        case Kind.FLOAT:
            return [
                "null" if value is None else _numbers(np.array([value], np.float64), _IN_JSON)[0] for value in values
            ]
    return [_dumps(value) for value in values]


def _csv(kind: Kind, values: Values, text: Text) -> list[str]:
    if isinstance(values, Repeated):
        return _repeated(values, text)
    if isinstance(values, np.ndarray):
        return _numbers(values, _IN_CSV)
    match kind:
        case Kind.TEXT:
            return ["" if value is None else text(value) for value in values]
        case Kind.JSON:
            return ["" if value is None else _quoted(value.decode()) for value in values]
        case Kind.DATE:
            return ["" if value is None else iso_millis(value) for value in values]
        case Kind.FLOAT:
            return ["" if value is None else _float(value, _IN_CSV) for value in values]
    return ["" if value is None else _dumps(value) for value in values]


def _repeated(values: Repeated, text: Text) -> list[str]:
    names = [text(name) for name in values.names]
    return [names[code] for code in values.codes.tolist()]


def _numbers(values: Any, odd: tuple[str, str, str]) -> list[str]:
    """The numbers as texts; `odd` are those of NaN, ∞ and −∞."""
    if not len(values):
        return []
    texts = orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].decode().split(",")
    if values.dtype.kind == "f" and not (finite := np.isfinite(values)).all():
        for place in np.flatnonzero(~finite).tolist():
            value = values[place]
            texts[place] = odd[0] if np.isnan(value) else odd[1 if value > 0 else 2]
    return texts


def _float(value: float, odd: tuple[str, str, str]) -> str:
    return _numbers(np.array([value], np.float64), odd)[0]


def _csv_text(plain: bool) -> Text:
    def text(value: str) -> str:
        is_formula = not plain and value.startswith(_FORMULA) and not _NUMBER.fullmatch(value)
        return _quoted(f"'{value}" if is_formula else value)

    return text


def _quoted(value: str) -> str:
    if value and _MUST_BE_QUOTED.isdisjoint(value) and value == value.strip():
        return value
    escaped = value.replace('"', '""')
    return f'"{escaped}"'

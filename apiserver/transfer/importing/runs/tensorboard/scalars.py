"""Reads records that hold one scalar, many at once, with numpy.

A run writes the same few tags again and again. Of two such records of equal length, only the bytes of time, step and
value differ. So one record is read as an example, which says where these bytes are. All records of that length that are
equal to it elsewhere are then read as columns:

    09 <time: 8 bytes> 10 <step: a varint> 2a 0d 0a 0b 0a 04 "loss" 15 <value: 4 bytes>
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from apiserver.common.protobuf_wire import BYTES, FIXED32, FIXED64, VARINT, Field, Malformed, fields
from apiserver.events.model import Float64Array, Int64Array
from apiserver.transfer.importing.runs.tensorboard.records import Block

#: Fewer records of one length, and longer records, are not worth it.
_FEWEST, _LONGEST = 4, 512
#: How many examples of one length are tried: each differs from the one before in where its bytes are.
_EXAMPLES = 8

_Place = tuple[int, int]
_Rows = npt.NDArray[np.uint8]


@dataclass(slots=True)
class Column:
    """The scalars of one tag, in the order of the file. `numbers`: of their records in the block."""

    tag: str
    numbers: Int64Array
    wall_times: Float64Array
    steps: Int64Array
    values: Float64Array


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the numbers of a record are; None for one that is not there, which is 0."""

    tag: str
    time: _Place | None
    step: _Place | None
    value: _Place
    form: str
    """The type of the value: `<f4`, `<f8` or `<i8`."""


def read(block: Block) -> tuple[list[Column], Int64Array]:
    """The scalars of a block, a column for each tag, and the numbers of all other records, ascending."""
    data = np.frombuffer(block.data, np.uint8)
    others: list[Int64Array] = []
    columns: dict[str, list[Column]] = defaultdict(list)
    for length in np.unique(block.lengths).tolist():
        numbers = np.flatnonzero(block.lengths == length)
        if not 0 < length <= _LONGEST or len(numbers) < _FEWEST:
            others.append(numbers)
            continue
        rows = data[block.starts[numbers][:, None] + np.arange(length)]
        for _ in range(_EXAMPLES):
            if not len(numbers):
                break
            taken = np.zeros(len(numbers), bool)
            for column, chosen in _like(rows, numbers):
                columns[column.tag].append(column)
                taken[chosen] = True
            if not taken.any():
                break
            rows, numbers = rows[~taken], numbers[~taken]
        others.append(numbers)
    return [_joined(parts) for parts in columns.values()], np.sort(np.concatenate([np.empty(0, np.int64), *others]))


def _like(rows: _Rows, numbers: Int64Array) -> Iterator[tuple[Column, Int64Array]]:
    """Columns of the rows whose numbers are where the first row that is a scalar has them, and which rows these are."""
    layout = next((found for row in rows[:_EXAMPLES] if (found := _layout(row.tobytes()))), None)
    if layout is None:
        return
    names = rows.copy()
    for place in (layout.time, layout.value):
        if place is not None:
            names[:, slice(*place)] = 0
    if layout.step is not None:
        names[:, slice(*layout.step)] &= 0x80  # the bits that say whether the number goes on
    kinds, of_row = np.unique(names.view(f"V{rows.shape[1]}")[:, 0], return_inverse=True)
    order = np.argsort(of_row, kind="stable")
    ends = np.cumsum(np.bincount(of_row, minlength=len(kinds)))
    for chosen in np.split(order, ends[:-1]):
        here = _layout(rows[chosen[0]].tobytes())
        if here is not None and replace(here, tag=layout.tag) == layout:
            yield _column(here, rows[chosen], numbers[chosen]), chosen


def _column(layout: _Layout, rows: _Rows, numbers: Int64Array) -> Column:
    steps = np.zeros(len(rows), np.uint64)
    if layout.step is not None:
        for shift, place in enumerate(range(*layout.step)):
            steps |= (rows[:, place].astype(np.uint64) & np.uint64(0x7F)) << np.uint64(7 * shift)
    times = np.zeros(len(rows)) if layout.time is None else _numbers(rows, layout.time, "<f8")
    return Column(layout.tag, numbers, times, steps.view(np.int64), _numbers(rows, layout.value, layout.form))


def _numbers(rows: _Rows, place: _Place, form: str) -> Float64Array:
    return np.ascontiguousarray(rows[:, slice(*place)]).view(form)[:, 0].astype(np.float64)


def _joined(parts: list[Column]) -> Column:
    """Columns of one tag as one, in the order of the file."""
    numbers = np.concatenate([part.numbers for part in parts])
    order = np.argsort(numbers, kind="stable")
    times = np.concatenate([part.wall_times for part in parts])[order]
    steps = np.concatenate([part.steps for part in parts])[order]
    return Column(parts[0].tag, numbers[order], times, steps, np.concatenate([part.values for part in parts])[order])


# --- an example -------------------------------------------------------------------------------------


def _layout(record: bytes) -> _Layout | None:
    """Where the numbers of a record are; None if it is not just one scalar."""
    try:
        event = _once(fields(record))
        summary = event.pop(5, None)
        if summary is None or summary.type != BYTES or not _are(event, {1: FIXED64, 2: VARINT}):
            return None
        value = _inside(record, _inside(record, summary)[1])
        tag = record[value[1].start : value[1].stop].decode()
        place, form = _value(record, value)
    except (KeyError, Malformed, UnicodeDecodeError):
        return None
    return _Layout(tag, _place(event.get(1)), _place(event.get(2)), place, form)


def _value(record: bytes, value: dict[int, Field]) -> tuple[_Place, str]:
    """Where the number of a summary's value is, and its form. Raises KeyError if it is not one number."""
    if 9 in value and not _is_scalar_plugin(record, value[9]):
        raise KeyError(9)
    if _are({**value, 9: value.get(9)}, {1: BYTES, 2: FIXED32, 9: BYTES}):
        return (value[2].start, value[2].stop), "<f4"
    if not _are({**value, 9: value.get(9)}, {1: BYTES, 8: BYTES, 9: BYTES}):
        raise KeyError(8)
    tensor = _inside(record, value[8])
    kind, shape = tensor.pop(1), tensor.pop(2, None)
    if kind.type != VARINT or (shape is not None and shape.start != shape.stop):
        raise KeyError(1)
    ((number, content),) = tensor.items() if len(tensor) == 1 else ((0, kind),)
    form = {1: "<f4", 2: "<f8", 9: "<i8"}.get(kind.value, "")
    holds = {4: form, 5: "<f4" if form == "<f4" else "", 6: "<f8" if form == "<f8" else ""}.get(number, "")
    if not holds or content.stop - content.start != np.dtype(holds).itemsize:
        raise KeyError(number)
    return (content.start, content.stop), holds


def _is_scalar_plugin(record: bytes, metadata: Field) -> bool:
    inside = _inside(record, metadata)
    if 1 not in inside:
        return True
    name = _inside(record, inside[1]).get(1)
    return name is None or record[name.start : name.stop] in (b"", b"scalars")


def _inside(record: bytes, field: Field) -> dict[int, Field]:
    if field.type != BYTES:
        raise KeyError(field.number)
    return _once(fields(record, field.start, field.stop))


def _once(found: Iterator[Field]) -> dict[int, Field]:
    """The fields by number. Raises KeyError if one is there twice."""
    once: dict[int, Field] = {}
    for field in found:
        if field.number in once:
            raise KeyError(field.number)
        once[field.number] = field
    return once


def _are(found: dict[int, Field] | dict[int, Field | None], types: dict[int, int]) -> bool:
    """Whether there are no other fields than these; a field with None may be missing."""
    return all(number in types and (one is None or one.type == types[number]) for number, one in found.items())


def _place(field: Field | None) -> _Place | None:
    return None if field is None else (field.start, field.stop)

"""Reads tables in batches of columns: CSV with a header, JSON (a row a line, or an array), and Parquet.

Parquet needs the extra "parquet". A batch is bounded in rows, cells and characters, whatever a file holds.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from io import SEEK_END
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import orjson

from apiserver.common.extras import installed_by
from apiserver.common.protobuf_wire import Malformed
from apiserver.transfer.importing.report import ImportFailed
from apiserver.transfer.importing.runs.names import are_short
from apiserver.transfer.importing.runs.tables.broken import NAMED, Broken
from apiserver.transfer.importing.runs.tables.headers import MOST_COLUMNS, Header
from apiserver.transfer.importing.runs.tables.text_file import LONGEST, NOT_UTF_8, TextFile, is_unicode

#: Some rows of a table: its columns by name, all of one length. A value that is missing is None.
Batch: TypeAlias = Mapping[str, Sequence[Any]]

#: Bounds of a batch.
ROWS, _CELLS, _CHARACTERS = 65_536, 2**22, 2**26
PARQUET = (".parquet", ".pq")
_JSON = (".ndjson", ".jsonl", ".json")
_SEPARATORS = ",;\t"
#: A number with a decimal comma. "1.234,5" is none, and "1,234,567" neither.
_COMMA = re.compile(r"\s*[+-]?\d*,\d+(?:[eE][+-]?\d+)?\s*", re.ASCII)
#: The name of a file that TensorBoard's page writes; as JSON, it is an array of arrays of these.
TENSORBOARD = re.compile(r"run-(.+?)-tag-(.+)")
_TENSORBOARD_NAMES = ("Wall time", "Step", "Value")
#: In the state that the Trainer of Hugging Face keeps, the array of what was logged.
_LOG_HISTORY = re.compile(r'"log_history":\s*\[')
_ONE_OBJECT = (
    "it is one JSON object: write an object a line, or an array of objects (pandas: to_json(orient='records'))"
)
#: Matches the text between the elements of an array.
_BETWEEN = re.compile(r"[\s,]*")
_PIECE = 65_536


@dataclass(slots=True)
class Rows:
    """Some rows of a table, and the place of each in the file: its line, or its row, from 1 on."""

    columns: Batch
    numbers: Sequence[int]
    unit: str = "line"

    def places(self, chosen: Sequence[int]) -> list[str]:
        """The first few places of the chosen rows."""
        return [f"{self.unit} {self.numbers[row]}" for row in chosen[:NAMED]]


def name_of(path: Path) -> str:
    """The name of a table without what says how it is written: "a" of "a.csv.gz"."""
    return Path(path.stem).stem if path.suffix == ".gz" else path.stem


def rows(path: Path, broken: Broken) -> Iterator[Rows]:
    """The rows of a table. Lines that cannot be read are counted, and left out.

    Raises OSError, Malformed for a file that is no table, ImportFailed without the extra.
    """
    kind = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if path.suffix in PARQUET:
        yield from _parquet_rows(path, broken)
        return
    with closing(TextFile(path, broken)) as text:
        if kind in _JSON:
            yield from _json(text, broken, _TENSORBOARD_NAMES if TENSORBOARD.fullmatch(name_of(path)) else ())
        else:
            yield from _csv(text, broken)


# --- CSV -----------------------------------------------------------------------------------------


def _csv(text: TextFile, broken: Broken) -> Iterator[Rows]:
    csv.field_size_limit(LONGEST)
    names, separator, first = _header(text, broken)
    if not names:
        return
    if len(names) > MOST_COLUMNS:
        raise Malformed(f"it has {len(names):,} columns: more than {MOST_COLUMNS:,} are not read")
    header = Header(broken)
    header.add(enumerate(names))
    reader = csv.reader(chain(first, text.lines()), delimiter=separator, skipinitialspace=True, strict=True)
    full_rows = _full_rows(_csv_rows(reader, text, broken), names, broken)
    most = max(1, min(ROWS, _CELLS // len(names)))
    rows: list[list[str]] = []
    numbers: list[int] = []
    begun = text.characters
    for line, row in full_rows:
        rows.append(row)
        numbers.append(line)
        if len(rows) == most or text.characters - begun > _CHARACTERS:
            yield _csv_batch(header, rows, numbers, separator)
            rows, numbers, begun = [], [], text.characters
    if rows:
        yield _csv_batch(header, rows, numbers, separator)


def _csv_batch(header: Header, some: list[list[str]], numbers: list[int], separator: str) -> Rows:
    columns = ([one or None for one in column] for column in zip(*some, strict=True))
    if separator == ";":
        columns = (_with_points(column) for column in columns)
    return Rows(header.named(enumerate(columns)), numbers)


def _header(text: TextFile, broken: Broken) -> tuple[list[str], str, list[str]]:
    """The names of the columns, what separates them, and the first line if it is a row.

    The header is the first line that is neither blank nor a comment. As NumPy writes it, it is the last comment,
    above a line of as many cells with numbers among them.
    """
    comment, number = "", 0
    for line in text.lines():
        text.begin()
        if line.startswith("#"):
            _pass_over_comment(number, broken)
            comment, number = line.lstrip("# \t"), text.number
        elif line.strip():
            break
    else:
        return [], ",", []
    if NOT_UTF_8 in broken.kinds:
        raise Malformed("its header is not UTF-8: convert the file, such as by: iconv -f LATIN1 -t UTF-8")
    if "\0" in line:
        raise Malformed("its header has NUL characters: convert the file to UTF-8 (is it UTF-16 without its mark?)")
    separator = _separator(comment or line)
    above, names = _cells(comment, separator), _cells(line, separator)
    if len(above) == len(names) and any(map(_is_number, names)) and not any(map(_is_number, above)):
        return above, separator, [line]
    _pass_over_comment(number, broken)
    separator = _separator(line)
    names = _cells(line, separator)
    if line.count('"') % 2:  # a name has several lines
        names = [name.strip() for name in next(csv.reader(chain([line], text.lines()), delimiter=separator), [])]
    is_index = names[:1] == [""] and names[1:] == [str(number) for number in range(len(names) - 1)]
    if all(_is_number(name) for name in names if name) and any(names) and not is_index:
        raise Malformed(f"line {text.number} has only numbers: the first line has to name the columns")
    return names, separator, []


def _pass_over_comment(line: int, broken: Broken) -> None:
    if line:
        broken.note("comment", f"line {line}")


def _separator(header: str) -> str:
    """The character that separates most names of a header: a comma, a semicolon or a tab."""
    return max(_SEPARATORS, key=lambda one: len(_cells(header, one)))


def _cells(line: str, separator: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])]
    except csv.Error:
        return []


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True


def _csv_rows(reader: Any, text: TextFile, broken: Broken) -> Iterator[tuple[int, list[str]]]:
    """Each row with the number of its first line."""
    while True:
        text.begin()
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "unexpected end" in str(error) and text.number > text.first:
                lines = f"lines {text.first:,} to {text.number:,}"
                reason = f"line {text.first:,} has a quote that does not end: {lines} were not read"
                broken.ended = broken.ended or reason
            else:
                broken.add(f"a line that is no CSV ({error})", [f"line {text.first}"])
            continue
        yield text.first, row


def _full_rows(
    rows: Iterator[tuple[int, list[str]]], names: list[str], broken: Broken
) -> Iterator[tuple[int, list[str]]]:
    """The rows with a cell for each column; without blank ones, comments, and the header where it comes again."""
    width, blank = len(names), [""] * len(names)
    for line, row in rows:
        if not any(row):
            continue
        if row[0].startswith("#") and len(row) != width:
            broken.note("comment", f"line {line}")
        elif row[0].strip() == names[0] and [cell.strip() for cell in row] == names:
            broken.note("header again", f"line {line}")
        elif len(row) > width and any(row[width:]):
            broken.add("more cells than the header has", [f"line {line}"])
        else:
            yield line, row if len(row) == width else row[:width] + blank[len(row) :]


def _with_points(column: list[str | None]) -> list[str | None]:
    """A column with decimal points in place of decimal commas, unless it has points as well."""
    if not any("," in cell for cell in column if cell) or any("." in cell for cell in column if cell):
        return column
    return [cell.replace(",", ".") if cell and _COMMA.fullmatch(cell) else cell for cell in column]


# --- JSON ----------------------------------------------------------------------------------------


def _json(text: TextFile, broken: Broken, names: Sequence[str]) -> Iterator[Rows]:
    """The objects of an array, or one a line. Arrays in an array are rows of columns with these names."""
    start = text.read(1)
    while start and start.isspace():
        text.number += start == "\n"
        start = text.read(1)
    if start == "[":
        yield from _objects(enumerate(_elements(text, broken), 1), "an element", "row", broken, names)
    elif start:
        text.begin()
        first = start + next(text.lines(), "")
        lines = _lines(first, text)
        only = [*islice(lines, 2)]
        if first.strip() == "{" or (len(only) == 1 and _LOG_HISTORY.search(first)):
            held = "".join(line for _, line in only)
            yield from _objects(enumerate(_log_history(held, text, broken), 1), "an element", "row", broken)
        elif len(only) == 1 and _has_columns(first):
            raise Malformed(_ONE_OBJECT)
        else:
            yield from _objects(chain(only, lines), "a line", "line", broken)


def _lines(first: str, text: TextFile) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, by their numbers; the first was read."""
    for line in chain([first], text.lines()):
        if line.strip():
            yield text.number, line
        text.begin()


def _has_columns(line: str) -> bool:
    """Whether a line is an object of nothing but objects or arrays, as pandas writes the columns of a table."""
    row = _json_object(line, (), flat=False)
    return bool(row) and all(isinstance(value, dict | list) for value in (row or {}).values())


def _log_history(held: str, text: TextFile, broken: Broken) -> Iterator[str]:
    """The elements of the array in an object that begins with `held`. Raises Malformed for any other object."""
    held += text.read(_PIECE)
    array = _LOG_HISTORY.search(held)
    if array is None:
        raise Malformed(_ONE_OBJECT)
    broken.notes.append("it is a state of Hugging Face's Trainer: its log_history is read, and nothing else")
    yield from _elements(text, broken, held[array.end() :], is_all=False)


def _elements(text: TextFile, broken: Broken, held: str = "", *, is_all: bool = True) -> Iterator[str]:
    """The elements of an array whose bracket was read, and perhaps something behind it, which is `held`.

    Nothing may follow the array if it is all there is.
    """
    decoder, held, at, number = json.JSONDecoder(), held or text.read(_PIECE), 0, 1
    while True:
        at = cast(re.Match[str], _BETWEEN.match(held, at)).end()
        if held.startswith("]", at):
            if is_all and (held[at + 1 :] + text.read(_PIECE)).strip():
                broken.ended = "something follows the array: nothing was read behind it"
            return
        try:
            end = decoder.raw_decode(held, at)[1]
        except (ValueError, RecursionError):
            end = len(held)
        if end < len(held):
            yield held[at:end]
            at, number = end, number + 1
            continue
        more = text.read(max(_PIECE, len(held) - at))
        if not more or len(held) - at > LONGEST:
            broken.ended = broken.ended or f"row {number} is cut or no JSON: nothing was read from there on"
            return
        held, at = held[at:] + more, 0


def _objects(
    texts: Iterator[tuple[int, str]], what: str, unit: str, broken: Broken, columns: Sequence[str] = ()
) -> Iterator[Rows]:
    header = Header(broken)
    rows: list[dict[str, Any]] = []
    numbers: list[int] = []
    names: dict[str, None] = {}
    size = 0
    for number, text in texts:
        row = _json_object(text, columns) if is_unicode(text) else None
        if row is None:
            broken.add(f"{what} that is no JSON object", [f"{unit} {number}"])
            continue
        rows.append(row)
        numbers.append(number)
        names.update(dict.fromkeys(row))
        size += len(text)
        if len(rows) == ROWS or len(names) * len(rows) > _CELLS or size > _CHARACTERS:
            yield _json_batch(header, names, rows, numbers, unit)
            rows, numbers, names, size = [], [], {}, 0
            if len(header) > MOST_COLUMNS:
                broken.ended = f"it has more than {MOST_COLUMNS:,} columns: nothing was read behind {unit} {number:,}"
                return
    if rows:
        yield _json_batch(header, names, rows, numbers, unit)


def _json_batch(
    header: Header, names: dict[str, None], some: list[dict[str, Any]], numbers: list[int], unit: str
) -> Rows:
    header.add((name, name) for name in names)
    return Rows(header.named((name, [row.get(name) for row in some]) for name in names), numbers, unit)


def _json_object(text: str, columns: Sequence[str], *, flat: bool = True) -> dict[str, Any] | None:
    """The object of a text, or an array with a value for each of some columns.

    NaN and Infinity are numbers; numbers that are too large stay texts, which are none.
    """
    try:
        row = orjson.loads(text)
    except orjson.JSONDecodeError:
        try:
            row = json.loads(text, parse_float=lambda text: float(text) if math.isfinite(float(text)) else text)
        except (ValueError, RecursionError):
            return None
    if columns and isinstance(row, list) and len(row) == len(columns):
        return dict(zip(columns, row, strict=True))
    if not isinstance(row, dict):
        return None
    return _flat(row) if flat else row


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """An object with the values of those inside of it: {"train": {"loss": 1}} is {"train/loss": 1}.

    An object stays one, and so is no number, where a name would come twice or be longer than the server takes.
    """
    if not any(isinstance(value, dict) for value in row.values()):
        return row
    flat: dict[str, Any] = {}
    waiting = list(reversed(row.items()))
    while waiting:
        name, value = waiting.pop()
        inside: list[tuple[str, Any]] = []
        if isinstance(value, dict) and are_short(name, value):
            inside = [(f"{name}/{key}", content) for key, content in value.items()]
        if inside and not any(full in flat or full in row for full, _ in inside):
            waiting.extend(reversed(inside))
        else:
            flat[name] = value
    return flat


# --- Parquet -------------------------------------------------------------------------------------


def batches(path: Path) -> Iterator[Batch]:
    """The batches of a Parquet file. Raises OSError, Malformed for what is no table, ImportFailed without the extra."""
    for batch in _parquet(path):
        yield _Columns(batch)


class _Columns(Mapping[str, Sequence[Any]]):
    """The columns of a batch by name, each made when it is asked for."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch
        self._names = dict.fromkeys(batch.schema.names)
        self._made: dict[str, Sequence[Any]] = {}

    def __getitem__(self, name: str) -> Sequence[Any]:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._made:
            self._made[name] = _column(self._batch.column(name))
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _parquet_rows(path: Path, broken: Broken) -> Iterator[Rows]:
    header, done = Header(broken), 0
    for batch in _parquet(path):
        header.add(enumerate(batch.schema.names))
        columns = [_column(batch.column(number)) for number in range(batch.num_columns)]
        yield Rows(header.named(enumerate(columns)), range(done + 1, done + batch.num_rows + 1), "row")
        done += batch.num_rows


def _parquet(path: Path) -> Iterator[Any]:
    if not path.is_file():
        raise OSError(f"there is no file {path.name}")
    try:
        from arro3.io import read_parquet
    except ImportError:
        raise ImportFailed(f"{path.name}: Parquet needs an extra: {installed_by('parquet')}") from None
    with path.open("rb") as file:
        if file.read(4) != b"PAR1":
            raise Malformed("it is not a Parquet file")
        file.seek(0, SEEK_END)
        file.seek(max(file.tell() - 8, 0))
        length, magic = file.read(4), file.read(4)
        if magic != b"PAR1" or int.from_bytes(length, "little") > file.tell() - 12:
            raise Malformed("it is a Parquet file whose end is cut off")
    with _damage():
        yield from read_parquet(path, batch_size=ROWS)


@contextmanager
def _damage() -> Iterator[None]:
    """Raises Malformed for the errors of arro3, which has one of its own for each kind of damage, panics among them."""
    try:
        yield
    except (GeneratorExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise Malformed(f"it is not a Parquet file that can be read: {error}") from None


def _column(column: Any) -> Sequence[Any]:
    """A column of a batch: numbers as an array, times as epoch milliseconds, all else as Python has it."""
    from arro3.core import DataType as types

    with _damage():
        if types.is_timestamp(column.type):
            column = column.cast(types.timestamp("ms")).cast(types.int64())
        elif types.is_decimal(column.type):
            column = column.cast(types.float64())
        elif types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if types.is_numeric(column.type) and not column.null_count:
            return cast(Sequence[Any], np.asarray(column.to_numpy()))
        found: Sequence[Any] = column.to_pylist()
        return found

"""Texts of documents, remembered by row to be searched: in which rows a pattern can be found at all.

To search names, comments, tags and models of all of a company's tasks means to parse all their JSON. So the texts at
the paths that were searched last stay in memory, in one case and joined: some hundred bytes a row. Rows that changed
are read again before the next search, so what is remembered is never older than what was acknowledged.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Any

import orjson

from apiserver.stores.documents.dialect.paths import Path, reach
from apiserver.stores.documents.sqlite.table import Table, column_of, dumps
from apiserver.stores.documents.sqlite.unread import Unread

_MOST = 4
"""Sets of paths whose texts are remembered."""
_LARGEST = 32 * 2**20
"""Bytes of texts of one set that are remembered; of more, none are."""
_FEW = 1000
"""Rows that are looked up one by one."""
_ONE_OF = 16
"""Chunks, of which one is looked at to see whether rows are many."""
_ROWS = 256
"""Rows whose texts are joined: to look into few long texts takes a tenth of the time that many short ones take."""
_END = b"\xff"
"""What is between the texts of two rows, and in no text in UTF-8."""
_NONE = _END * (_ROWS - 1)

Execute = Callable[[str, tuple[Any, ...]], Iterable[tuple[Any, ...]]]


class Kind:
    """The texts at some paths of a table, of `_ROWS` rows at a time."""

    def __init__(self, table: Table, paths: tuple[Path, ...]) -> None:
        self.table = table
        self.paths = paths
        self.chunks: list[bytes] = []
        self.size = 0
        self.unread = Unread(path[0] for path in paths)

    @property
    def too_large(self) -> bool:
        """Whether there is too much text to be remembered."""
        return self.size > _LARGEST

    def read(self, execute: Execute) -> list[bytes] | None:
        """The chunks, with the rows that have changed; what changes meanwhile is left to the next. None: too large."""
        with self.unread.taken() as rows:
            if self.too_large:
                pass
            elif rows is None:
                self._read_all(execute)
            elif rows:
                self._read_again(execute, rows)
            if self.too_large:
                self.chunks = []
                self.unread.start_anew()
                return None
            return self.chunks

    def _read_all(self, execute: Execute) -> None:
        self.chunks, self.size = [], 0
        made: dict[int, bytes] = {}
        size = 0
        for row, text in self._rows(execute, "1", ()):
            made[row] = text
            size += len(text)
            if size > _LARGEST:
                self.size = size
                return
        self._put(made)

    def _read_again(self, execute: Execute, changed: Collection[int]) -> None:
        there = self._rows(execute, "row IN (SELECT value FROM json_each(?))", (dumps(list(changed)),))
        self._put({**dict.fromkeys(changed, b""), **dict(there)})

    def _rows(self, execute: Execute, where: str, parameters: tuple[Any, ...]) -> Iterator[tuple[int, bytes]]:
        """The numbers and texts of some rows."""
        sources = [_source(self.table, path) for path in self.paths]
        columns = list(dict.fromkeys(column for column, _ in sources))
        plans = [(columns.index(column), below) for column, below in sources]
        sql = f'SELECT row, {", ".join(columns)} FROM "{self.table.name}" WHERE {where}'
        for row, *found in execute(sql, parameters):
            yield row, _joined(found, plans)

    def _put(self, made: dict[int, bytes]) -> None:
        for number, rows in groupby(sorted(made), lambda row: row // _ROWS):
            self.chunks.extend([_NONE] * (number + 1 - len(self.chunks)))
            before = self.chunks[number]
            texts = before.split(_END)
            for row in rows:
                texts[row % _ROWS] = made[row]
            after = self.chunks[number] = _END.join(texts)
            self.size += len(after) - len(before)


def _source(table: Table, path: Path) -> tuple[str, Path | None]:
    """The column that has a path's values, and the path inside its JSON; None: the column is the value."""
    return (column_of(path), None) if path == ("id",) or path in table.keys else table.source(path)


def _joined(found: Sequence[Any], plans: Collection[tuple[int, Path | None]]) -> bytes:
    """The texts that a row's columns hold, one after another."""
    parsed: dict[int, Any] = {}
    texts: list[str] = []
    for place, below in plans:
        value = found[place]
        if below is None:
            values: Iterable[Any] = (value,)
        elif value is None:
            continue
        else:
            if place not in parsed:
                parsed[place] = orjson.loads(value)
            values = reach(parsed[place], below)
        texts.extend(_texts(values))
    return _folded("\0".join(texts))


def _folded(text: str) -> bytes:
    """The same for texts that differ in case only."""
    return text.casefold().encode()


def _texts(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from (item for item in value if isinstance(item, str))


class Search:
    """The rows in which some texts can be, in any case."""

    def __init__(self, chunks: list[bytes], texts: Collection[str]) -> None:
        self._chunks = chunks
        self._texts = [_folded(text) for text in texts]
        self._split: dict[int, list[bytes]] = {}

    def few(self) -> list[int] | None:
        """All of them; None when they are many, which mostly shows in some chunks."""
        many = 2 * _FEW // _ONE_OF + 1
        if len(list(islice(self._rows(_ONE_OF), many))) == many:
            return None
        rows = list(islice(self._rows(), _FEW + 1))
        return rows if len(rows) <= _FEW else None

    def may(self, row: int) -> bool:
        """Whether a row can be one; true when that is not known."""
        number, place = divmod(row, _ROWS)
        if number >= len(self._chunks):
            return True
        if number not in self._split:
            self._split[number] = self._chunks[number].split(_END)
        return self._has_all(self._split[number][place])

    def _rows(self, step: int = 1) -> Iterator[int]:
        first, *others = self._texts
        for number in range(0, len(self._chunks), step):
            if self._has_all(chunk := self._chunks[number]):
                rows = [place for place in enumerate(chunk.split(_END)) if first in place[1]]
                for text in others:
                    rows = [place for place in rows if text in place[1]]
                yield from (number * _ROWS + place for place, _ in rows)

    def _has_all(self, there: bytes) -> bool:
        return all(text in there for text in self._texts)


class Texts:
    """What is remembered of all tables."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kinds: OrderedDict[tuple[str, tuple[Path, ...]], Kind] = OrderedDict()

    def search(self, table: Table, paths: Collection[Path], texts: Collection[str], execute: Execute) -> Search | None:
        """Search what is at some paths for texts without NUL; None when it is too large to be remembered.

        `execute` reads what was committed when it is called, or later.
        """
        key = (table.name, tuple(sorted(paths)))
        with self._lock:
            kind = self._kinds.setdefault(key, Kind(table, key[1]))
            self._kinds.move_to_end(key)
            while len(self._kinds) > _MOST:
                self._kinds.popitem(last=False)
        chunks = kind.read(execute)
        return None if chunks is None else Search(chunks, texts)

    def forget(self, table: str, rows: Collection[int], roots: Collection[str] | None = None) -> None:
        """Rows of a table came, went, or have changed in these top-level fields (None: in any)."""
        with self._lock:
            kinds = [kind for (name, _), kind in self._kinds.items() if name == table]
        for kind in kinds:
            kind.unread.add(rows, roots)

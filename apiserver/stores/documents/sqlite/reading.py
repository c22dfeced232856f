"""Makes documents of rows, one after another, keeps only the wanted fields, and counts the bytes that they take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from sys import getsizeof
from typing import Any

import numpy as np
import orjson

from apiserver.stores.documents.dialect.paths import Path, project
from apiserver.stores.documents.query import Counted, Document
from apiserver.stores.documents.sqlite.table import apart_column, decode

#: A row of fewer bytes counts by its own size. Of a larger one, the fields that are kept count.
_SOME = 2**11
#: A small document takes so many times its JSON, as text and decoded. Each value in it takes at least so many bytes.
_DECODED, _EACH_VALUE = 3, 64
#: JSON of more bytes may be a single long text, so the size of the decoded document counts.
_LARGE = 2**18
#: (least first byte of a character in UTF-8, bytes of each character of a text that has such a character).
#: For example, 😀 begins with 0xF0, and each character of a text with 😀 takes four bytes.
_WIDTHS = ((0xF0, 4), (0xC4, 2))


class Documents:
    """Makes documents of the rows of one query. The query selects `columns`: `doc` and those in `apart`, as bytes.

    As text, a row with a single character such as 😀 would take four times as much memory.

    `wanted`: the paths of the fields that are kept; None keeps all. `counted` is called with each one's bytes.
    """

    def __init__(self, apart: Sequence[str], wanted: list[Path] | None, counted: Counted | None) -> None:
        self._apart = apart
        self._wanted = wanted
        self._counted = counted
        self.read = 0
        """Bytes of all rows so far."""

    @property
    def columns(self) -> list[str]:
        return [f"CAST({column} AS BLOB)" for column in ("doc", *map(apart_column, self._apart))]

    def of(self, rows: Iterable[tuple[Any, ...]]) -> list[Document]:
        """The documents of all rows."""
        return [self._made(*row) for row in rows]

    def _made(self, *row: bytes | None) -> Document:
        texts = [text for text in row if text is not None]
        length = sum(map(len, texts))
        self.read += length
        if self._counted is not None and length >= _LARGE:
            most = sum(len(text) * _width(text) for text in texts)
            self._counted(most)
            self._counted(-most)
        doc, *apart = row
        assert doc is not None
        document = decode(doc, self._apart, apart)
        if self._wanted is not None:
            document = project(document, self._wanted)
        if self._counted is not None:
            self._counted(_DECODED * length if length < _SOME else _memory_of(document))
        return document


def _width(text: bytes) -> int:
    """The most bytes that a character takes when the text is decoded."""
    greatest = np.frombuffer(text, np.uint8).max(initial=0)
    return next((width for first, width in _WIDTHS if greatest >= first), 1)


def _memory_of(document: Document) -> int:
    """About how many bytes a document takes as JSON and decoded."""
    made = orjson.dumps(document)
    if len(made) < _LARGE:
        return max(_DECODED * len(made), _EACH_VALUE * sum(map(made.count, (b"[", b"{", b","))))
    return max(len(made), _decoded_size(document))


def _decoded_size(value: Any) -> int:
    """Bytes of a value with all in it, after it was made JSON: a text then keeps its UTF-8 unless it is ASCII."""
    size = 0
    rest = [value]
    while rest:
        value = rest.pop()
        size += getsizeof(value)
        if isinstance(value, dict):
            rest += [*value, *value.values()]
        elif isinstance(value, list):
            rest += value
    return size

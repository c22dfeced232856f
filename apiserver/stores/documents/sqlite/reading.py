"""Documents made of rows, one after another, so that of each only what is wanted is kept; and counted as they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from sys import getsizeof
from typing import Any

import numpy as np
import orjson

from apiserver.stores.documents.base import Counted, Document
from apiserver.stores.documents.dialect.paths import Path, project
from apiserver.stores.documents.sqlite.table import apart_column, decode

#: Characters of a document's row; of one that has more it is looked at how much of it is wanted.
_SOME = 2**11
#: How many times its JSON a small document takes, as text and decoded; and what each value in it takes at least.
_DECODED, _EACH_VALUE = 3, 64
#: Bytes of JSON that may be a single long text, so that what it takes is looked at.
_LARGE = 2**18
#: Bytes that each character of a text takes when it has one beyond U+FFFF, or U+00FF; in UTF-8 those begin with these.
_WIDTHS = ((0xF0, 4), (0xC4, 2))


class Documents:
    """The documents of the rows of one query, which have the `columns`: `doc` and those of `apart`, as bytes.

    As text, a row would take four times as much because of a single character such as 😀.

    `wanted`: the paths of the fields that are kept, None for all. `counted` is told what that takes.
    """

    def __init__(self, apart: Sequence[str], wanted: list[Path] | None, counted: Counted | None) -> None:
        self._apart = apart
        self._wanted = wanted
        self._counted = counted

    @property
    def columns(self) -> list[str]:
        return [f"CAST({column} AS BLOB)" for column in ("doc", *map(apart_column, self._apart))]

    def of(self, rows: Iterable[tuple[Any, ...]]) -> list[Document]:
        """The documents of all rows."""
        return [self._made(*row) for row in rows]

    def _made(self, *row: bytes | None) -> Document:
        texts = [text for text in row if text is not None]
        length = sum(map(len, texts))
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
    """Bytes that a character takes when the text is decoded, at most."""
    greatest = np.frombuffer(text, np.uint8).max(initial=0)
    return next((width for first, width in _WIDTHS if greatest >= first), 1)


def _memory_of(document: Document) -> int:
    """Bytes that a document takes as JSON and decoded, about."""
    made = orjson.dumps(document)
    if len(made) < _LARGE:
        return max(_DECODED * len(made), _EACH_VALUE * sum(map(made.count, (b"[", b"{", b","))))
    return max(len(made), _decoded_size(document))


def _decoded_size(value: Any) -> int:
    """Bytes that a value takes with all in it, once it was made JSON: a text that is not ASCII then keeps its UTF-8."""
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

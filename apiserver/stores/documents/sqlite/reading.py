"""Documents made of rows, one after another, so that of each only what is wanted is kept; and counted as they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from apiserver.json_structure import structure_of
from apiserver.stores.documents.base import Counted, Document
from apiserver.stores.documents.dialect.paths import Path, project
from apiserver.stores.documents.sqlite.table import decode

#: Characters of a document's row; of one that has more it is looked at how much of it is wanted.
_SOME = 2**11
#: How many times its JSON a small document takes, as text and decoded.
_DECODED = 3
#: Bytes of JSON that may be a single long text, or many small values; and what each of these takes.
_LARGE, _EACH_VALUE = 2**18, 128


class Documents:
    """The documents of the rows of one query, which have the columns `doc` and those of `apart`.

    `wanted`: the paths of the fields that are kept, None for all. `counted` is told what that takes.
    """

    def __init__(self, apart: Sequence[str], wanted: list[Path] | None, counted: Counted | None) -> None:
        self._apart = apart
        self._wanted = wanted
        self._counted = counted

    def of(self, rows: Iterable[tuple[Any, ...]]) -> list[Document]:
        """The documents of all rows."""
        return [self._made(*row) for row in rows]

    def _made(self, doc: str, *apart: str | None) -> Document:
        length = len(doc) + sum([len(text) for text in apart if text is not None])
        if self._counted is not None and length >= _LARGE:
            self._counted(length)
            self._counted(-length)
        document = decode(doc, self._apart, apart)
        if self._wanted is not None:
            document = project(document, self._wanted)
        if self._counted is not None:
            self._counted(_DECODED * length if length < _SOME else _memory_of(orjson.dumps(document)))
        return document


def _memory_of(document: bytes) -> int:
    """Bytes that a document takes as JSON and decoded, about."""
    if len(document) < _LARGE:
        return _DECODED * len(document)
    return max(len(document), _EACH_VALUE * structure_of(document).values)

"""Reads a text file in bounded pieces: UTF-8, or UTF-16 and UTF-32 with their mark, perhaps compressed by gzip.

No other encoding is guessed: lines that are not UTF-8 are left out, and named. A file of any size and content takes no
more memory than its longest line, which is bounded, too.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from apiserver.common.protobuf_wire import Malformed
from apiserver.transfer.importing.runs.tables.broken import Broken

#: Characters of a line, and of a row that has several lines.
LONGEST = 2**24
_GZIP = b"\x1f\x8b"
_MARKS = {
    b"\xff\xfe\0\0": "utf-32",
    b"\0\0\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
#: The kinds of files that are no text, by their first bytes.
_OTHERS = {
    b"PK\x03\x04": "a zip archive or an Excel sheet: unpack it, or save the sheet as CSV",
    b"PAR1": "a Parquet file: unpack it, and let its name end with .parquet",
    b"\x89HDF": "an HDF5 file: write its table as CSV or Parquet",
    b"BZh": "compressed by bzip2: unpack it, or compress it by gzip",
    b"\xfd7zXZ": "compressed by xz: unpack it, or compress it by gzip",
    b"\x28\xb5\x2f\xfd": "compressed by Zstandard: unpack it, or compress it by gzip",
}
#: The exceptions of a file whose rest cannot be read.
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile, UnicodeError)
NOT_UTF_8 = "a line that is not UTF-8 (convert the file, such as by: iconv -f LATIN1 -t UTF-8)"


class TextFile:
    """A text, read line by line or in pieces. What ends the reading too early is told to `broken`."""

    def __init__(self, path: Path, broken: Broken) -> None:
        """Raises OSError, and Malformed for a file that is no text."""
        self._broken = broken
        self.number = 0
        """The number of the line that was read last."""
        self.first = 1
        """The number of the first line of a row."""
        self.characters = 0
        """The characters of the lines that were read."""
        self._most = LONGEST
        """The most characters that may have been read when the row ends."""
        with path.open("rb") as file:
            is_packed = file.read(2) == _GZIP
        packed = cast(BinaryIO, gzip.GzipFile(path)) if is_packed else path.open("rb")
        self._file: io.TextIOWrapper | None = None
        try:
            start = cast(io.BufferedReader, packed).peek(8)
        except (EOFError, OSError, zlib.error):
            self._end("its gzip data cannot be read")
            packed.close()
            return
        for beginning, what in _OTHERS.items():
            if start.startswith(beginning):
                packed.close()
                raise Malformed(f"it is {what}")
        encoding = next((name for mark, name in _MARKS.items() if start.startswith(mark)), "")
        errors = "strict" if encoding else "surrogateescape"
        self._file = io.TextIOWrapper(packed, encoding or "utf-8-sig", errors, newline="")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def begin(self) -> None:
        """A row begins."""
        self.first = self.number + 1
        self._most = self.characters + LONGEST

    def lines(self) -> Iterator[str]:
        """The lines; `begin` is called before the first of each row, which is bounded."""
        if self._file is None:
            return
        readline = self._file.readline
        try:
            while line := readline(LONGEST):
                self.number += 1
                self.characters += len(line)
                if self.characters >= self._most:
                    reason = f"line {self.first:,} has more than {LONGEST:,} characters"
                    self._end(f"{reason} (is there a quote that does not end?)")
                    return
                if line.isascii() or is_unicode(line):
                    yield line
                else:
                    self._pass_over(len(line))
        except _DAMAGE as error:
            self._end(self._why(error))

    def _pass_over(self, characters: int) -> None:
        self._broken.add(NOT_UTF_8, [f"line {self.number}"])
        self._most += characters
        self.first += self.first == self.number

    def read(self, most: int) -> str:
        """The next characters; "" at the end."""
        try:
            return "" if self._file is None else self._file.read(most)
        except _DAMAGE as error:
            self._end(self._why(error))
            return ""

    def _why(self, error: Exception) -> str:
        if isinstance(error, UnicodeError) and self._file is not None:
            return f"it is not {self._file.encoding.upper()}, as its first bytes say"
        return "its gzip data are cut or damaged"

    def _end(self, reason: str) -> None:
        self._broken.ended = f"{reason}: nothing was read behind line {self.number:,}"


def is_unicode(text: str) -> bool:
    """Whether a text has no bytes that are not UTF-8."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

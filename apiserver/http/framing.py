"""Finds where a message ends in the bytes of a connection.

The parser handles all requests that it is given at once, even a thousand. So it is given one at a time, and this module
finds where each ends. The parser still decides what is valid. If it sees the end of a message elsewhere, `protocol.py`
refuses the request.

A head ends with an empty line. A body has as many bytes as Content-Length says, or comes in chunks:

    5;extension CRLF  hello CRLF  0 CRLF  Trailer: x CRLF  CRLF
"""

from __future__ import annotations

import re

#: Bytes of the longest line that gives a chunk's size and extensions, and of all trailers together.
_SIZE_LINE = 256
_TRAILERS = 8 * 2**10
#: Chunks that are passed on in one turn of the event loop: even a tiny chunk takes time.
_CHUNKS_A_TURN = 64
_METHOD = re.compile(rb"[A-Z-]{1,20}(?: |\Z)")
_SIZE = re.compile(rb"([0-9a-fA-F]{1,15})[ \t;\r]")


class Misframed(Exception):
    """The body is not a sequence of chunks, or a size line or its trailers are too long."""


def head_end(data: bytes, at: int) -> int:
    """The position after the head that begins at `at`; -1 while its end is missing."""
    end = data.find(b"\r\n\r\n", at)
    return end if end < 0 else end + 4


def may_be_head(data: bytes, at: int) -> bool:
    """Whether an incomplete head begins like a request; TLS, for example, does not."""
    return at == len(data) or _METHOD.match(data, at, at + 21) is not None


class SizedBody:
    """A body of `size` bytes."""

    def __init__(self, size: int) -> None:
        self._left = size
        self.complete = not size
        """Whether the whole body was taken."""

    def take(self, data: bytes, at: int) -> int:
        """Take the part of the body that begins at `at`; returns the position after it."""
        end = min(at + self._left, len(data))
        self._left -= end - at
        self.complete = not self._left
        return end


class ChunkedBody:
    """A body that comes in chunks."""

    def __init__(self) -> None:
        self._left = 0  # bytes of the chunk, with the line break after it, that are still to come
        self._line = b""  # the beginning of a line whose end is missing
        self._trailers: int | None = None  # bytes of trailers so far; None before the last chunk
        self.complete = False

    def take(self, data: bytes, at: int) -> int:
        """Take the part of the body that begins at `at`, up to 64 chunks; returns the position after it.

        Raises Misframed.
        """
        for _ in range(_CHUNKS_A_TURN):
            step = min(self._left, len(data) - at)
            self._left -= step
            at += step
            if at == len(data):
                break
            line, at = self._take_line(data, at)
            if line is not None:
                self._end_line(line)
            if self.complete:
                break
        return at

    def _take_line(self, data: bytes, at: int) -> tuple[bytes | None, int]:
        """The next line, or None if it does not end in `data`, and the position after what was taken."""
        bound = _SIZE_LINE if self._trailers is None else _TRAILERS
        end = data.find(b"\n", at, at + bound) + 1
        line = self._line + data[at : end or at + bound]
        if len(line) + (self._trailers or 0) > bound or (not end and len(line) == bound):
            raise Misframed("a line of a chunk's size, or the trailers, are too long")
        self._line = b"" if end else line
        return (line, end) if end else (None, len(data))

    def _end_line(self, line: bytes) -> None:
        if self._trailers is not None:
            self._trailers += len(line)
            self.complete = line == b"\r\n"
        elif match := _SIZE.match(line):
            size = int(match[1], 16)
            if size:
                self._left = size + 2
            else:
                self._trailers = 0
        else:
            raise Misframed("a line is not the size of a chunk")

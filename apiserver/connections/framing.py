"""Where a message ends in the bytes of a connection.

The parser reads on and on: of a thousand requests that come at once it makes a thousand. So it is given one at a time,
and where one ends has to be known before. The parser is still the judge of what is valid; what it takes for the end of
a message and what is measured here must be the same place, else the request is refused (`protocol.py`).

A head ends with an empty line, a body after the bytes of Content-Length, or it comes in chunks:

    5;extension CRLF  hello CRLF  0 CRLF  Trailer: x CRLF  CRLF
"""

from __future__ import annotations

import re

#: The longest line with the size of a chunk and its extensions, and all trailers together, in bytes.
_SIZE_LINE = 256
_TRAILERS = 8 * 2**10
#: Chunks that are passed on in one turn of the event loop. Tiny ones cost more than their bytes tell.
_CHUNKS_A_TURN = 64
_METHOD = re.compile(rb"[A-Z-]{1,20}(?: |\Z)")
_SIZE = re.compile(rb"([0-9a-fA-F]{1,15})[ \t;\r]")


class Misframed(Exception):
    """A body that is no sequence of chunks, or whose chunks or trailers are out of bounds."""


def head_end(data: bytes, at: int) -> int:
    """The place after the empty line that ends the head which begins at `at`; -1: it has not come yet."""
    end = data.find(b"\r\n\r\n", at)
    return end if end < 0 else end + 4


def may_be_head(data: bytes, at: int) -> bool:
    """Whether a head that is not whole yet begins as a request does; TLS, for one, does not."""
    return at == len(data) or _METHOD.match(data, at, at + 21) is not None


class Sized:
    """A body of `size` bytes."""

    def __init__(self, size: int) -> None:
        self._left = size
        self.complete = not size
        """Whether all of it was taken."""

    def take(self, data: bytes, at: int) -> int:
        """The place in `data` up to which the body goes from `at`."""
        end = min(at + self._left, len(data))
        self._left -= end - at
        self.complete = not self._left
        return end


class Chunked:
    """A body that comes in chunks."""

    def __init__(self) -> None:
        self._left = 0  # of the chunk and the line break after it
        self._line = b""  # what has come of the line
        self._trailers: int | None = None  # bytes, once the last chunk has come
        self.complete = False

    def take(self, data: bytes, at: int) -> int:
        """The place in `data` up to which the body goes from `at`, or how far it is passed on in this turn.

        Misframed when a line is out of bounds.
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
        """The line that ends next, or None when it does not end in `data`, and the place after what was taken."""
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

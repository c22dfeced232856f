"""Content codings: inflates bodies up to a limit, and compresses answers at a fast level."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator, Iterator

import zstandard

from apiserver.rpc.errors import bad_request, too_large, unsupported_encoding

#: The window of zstd as a content coding: decoders must allow for it, encoders may not exceed it (RFC 9659).
_ZSTD_WINDOW = 8 * 2**20
_PIECE = 2**18
#: Compressed bytes that zlib is fed at a time; it copies those that it leaves.
_ZLIB_STEP = 2**16
#: A zstd block takes at least 4 bytes and holds at most 128 KiB: one step yields at most 16 MiB.
_ZSTD_STEP = 512
_GZIP, _ZLIB, _RAW_DEFLATE = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS
#: Most gzip members, or zstd frames, in a body. Clients send one; a million empty ones would cost much time.
_MOST_PARTS = 1000

#: About how many bytes `Inflating.step` yields. Each piece counts as `_EACH_PIECE` more: even an empty one takes time.
_STEP = 2**20
_EACH_PIECE = 2**13
#: Bytes of memory that a step of zstd may take: its window, and its output twice, in pieces and joined.
_ZSTD_ROOM = _ZSTD_WINDOW + 2 * 2**24


class _Corrupt(Exception):
    """The bytes are not valid in their coding."""


class Inflating:
    """Decodes `data` in steps of a few milliseconds; 415 for an unknown coding."""

    def __init__(self, data: bytes, encoding: str, limit: int) -> None:
        decoder = _DECODERS.get(encoding.strip().lower())
        if decoder is None:
            raise unsupported_encoding(encoding, "gzip, deflate or zstd")
        self._encoding = encoding
        self._limit = limit
        self._coming = decoder(data)
        self._pieces: list[bytes] = []
        self.size = 0
        """Bytes that are decoded so far."""
        self.room = _ZSTD_ROOM if decoder is _zstd else _STEP
        """Bytes of memory that a step may take beside these."""
        self.done = False

    def step(self) -> None:
        """Decode a little more. 413 beyond the limit; 400 for corrupt data."""
        work = 0
        try:
            while work < _STEP:
                piece = next(self._coming, None)
                if piece is None:
                    self.done = True
                    return
                self.size += len(piece)
                if self.size > self._limit:
                    raise too_large(self._limit)
                if piece:
                    self._pieces.append(piece)
                work += len(piece) + _EACH_PIECE
        except (_Corrupt, zlib.error, zstandard.ZstdError) as error:
            raise bad_request(f"The {self._encoding[:50]} body is corrupt: {error}") from None

    def content(self) -> bytes:
        """The decoded data, once `done`."""
        return b"".join(self._pieces)


def inflate(data: bytes, encoding: str, limit: int) -> bytes:
    """`data` decoded. 413 as soon as it exceeds `limit` bytes; 415 for an unknown coding; 400 for corrupt data."""
    inflating = Inflating(data, encoding, limit)
    while not inflating.done:
        inflating.step()
    return inflating.content()


def _gzip(data: bytes) -> Iterator[bytes]:
    """One or more members, one after the other."""
    position = 0
    for _ in range(_MOST_PARTS):
        position = yield from _zlib_stream(data, position, _GZIP)
        if position == len(data):
            return
    raise _Corrupt(f"it has more than {_MOST_PARTS} members")


def _deflate(data: bytes) -> Iterator[bytes]:
    """With or without a zlib header: clients send both."""
    has_header = len(data) >= 2 and data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0
    if (yield from _zlib_stream(data, 0, _ZLIB if has_header else _RAW_DEFLATE)) < len(data):
        raise _Corrupt("there is more after its end")


def _zlib_stream(data: bytes, position: int, wbits: int) -> Generator[bytes, None, int]:
    """Yields pieces of the stream that begins at `position`; returns where it ends."""
    decoder = zlib.decompressobj(wbits)
    while not decoder.eof:
        fed = decoder.unconsumed_tail
        if not fed:
            fed = data[position : position + _ZLIB_STEP]
            position += len(fed)
        piece = decoder.decompress(fed, _PIECE)
        if not fed and not piece and not decoder.eof:
            raise _Corrupt("it is cut off")
        yield piece
    return position - len(decoder.unused_data)


def _zstd(data: bytes) -> Iterator[bytes]:
    """One or more frames. The decoder gets few bytes at a time, so that each call yields a bounded amount."""
    position, decoder, frames = 0, _zstd_frame(), 1
    while position < len(data):
        yield decoder.decompress(data[position : position + _ZSTD_STEP])
        position = min(position + _ZSTD_STEP, len(data)) - len(decoder.unused_data)
        if decoder.eof and position < len(data):
            decoder = _zstd_frame()
            frames += 1
            if frames > _MOST_PARTS:
                raise _Corrupt(f"it has more than {_MOST_PARTS} frames")
    if not decoder.eof:
        raise _Corrupt("it is cut off")


def _zstd_frame() -> zstandard.ZstdDecompressionObj:
    return zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj(write_size=_PIECE)


def _identity(data: bytes) -> Iterator[bytes]:
    yield data


_DECODERS: dict[str, Callable[[bytes], Iterator[bytes]]] = {
    "": _identity,
    "identity": _identity,
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "zstd": _zstd,
}


# --- answers ---------------------------------------------------------------------------------------


def accepted_encoding(header: str) -> str | None:
    """The coding for the answer, by the request's Accept-Encoding header: zstd, else gzip, else None."""
    accepted = {name for name, weight in map(_coding, header.split(",")) if weight > 0}
    return next((name for name in ("zstd", "gzip") if name in accepted), None)


def _coding(item: str) -> tuple[str, float]:
    name, _, parameter = item.partition(";")
    key, _, weight = parameter.strip().partition("=")
    try:
        return name.strip().lower(), float(weight) if key == "q" else 1.0
    except ValueError:
        return "", 0.0


def compress(data: bytes | list[bytes], encoding: str) -> bytes:
    """`data`, whole or in pieces, compressed by zstd or gzip at the fastest level."""
    if encoding == "zstd" and isinstance(data, bytes):
        return zstandard.ZstdCompressor(level=1).compress(data)
    pieces = [data] if isinstance(data, bytes) else data
    compressor = (
        zstandard.ZstdCompressor(level=1).compressobj(size=sum(map(len, pieces)))
        if encoding == "zstd"
        else zlib.compressobj(1, zlib.DEFLATED, _GZIP)
    )
    return b"".join([*map(compressor.compress, pieces), compressor.flush()])

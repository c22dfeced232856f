"""Content codings: bodies inflated up to a limit, answers compressed at a cheap level."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator, Iterator

import zstandard

from apiserver.rpc.errors import bad_request, too_large, unsupported_encoding

#: RFC 9659: what a decoder of this content coding must, and a sender may, take for a window.
_ZSTD_WINDOW = 8 * 2**20
_PIECE = 2**18
#: A zstd block takes at least 4 bytes and holds at most 128 KiB: one step yields at most 16 MiB.
_ZSTD_STEP = 512
_GZIP, _ZLIB, _RAW_DEFLATE = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS


class _Corrupt(Exception):
    """The bytes are not what their coding says."""


def inflate(data: bytes, encoding: str, limit: int) -> bytes:
    """`data` decoded. 413 beyond `limit` bytes, where it stops; 415 for an unknown coding; 400 for corrupt data."""
    decoder = _DECODERS.get(encoding.strip().lower())
    if decoder is None:
        raise unsupported_encoding(encoding, "gzip, deflate or zstd")
    pieces: list[bytes] = []
    size = 0
    try:
        for piece in decoder(data):
            size += len(piece)
            if size > limit:
                raise too_large(limit)
            pieces.append(piece)
    except (_Corrupt, zlib.error, zstandard.ZstdError) as error:
        raise bad_request(f"The {encoding} body is corrupt: {error}") from None
    return b"".join(pieces)


def _gzip(data: bytes) -> Iterator[bytes]:
    """Members follow one another."""
    while data:
        data = yield from _zlib_stream(data, _GZIP)


def _deflate(data: bytes) -> Iterator[bytes]:
    """With or without a zlib header: clients do either."""
    has_header = len(data) >= 2 and data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0
    if (yield from _zlib_stream(data, _ZLIB if has_header else _RAW_DEFLATE)):
        raise _Corrupt("there is more after its end")


def _zlib_stream(data: bytes, wbits: int) -> Generator[bytes, None, bytes]:
    """Yields pieces of the first stream in `data`; returns what follows it."""
    decoder = zlib.decompressobj(wbits)
    while not decoder.eof:
        piece = decoder.decompress(data, _PIECE)
        if not piece and not decoder.eof:
            raise _Corrupt("it is cut off")
        yield piece
        data = decoder.unconsumed_tail
    return decoder.unused_data


def _zstd(data: bytes) -> Iterator[bytes]:
    """Frames follow one another. Fed by so little at a time that one step cannot inflate without bound."""
    position, decoder = 0, _zstd_frame()
    while position < len(data):
        yield decoder.decompress(data[position : position + _ZSTD_STEP])
        position = min(position + _ZSTD_STEP, len(data)) - len(decoder.unused_data)
        if decoder.eof and position < len(data):
            decoder = _zstd_frame()
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
    """The coding to answer a client with that sent `Accept-Encoding: header`: zstd before gzip, or None."""
    accepted = {name for name, weight in map(_coding, header.split(",")) if weight > 0}
    return next((name for name in ("zstd", "gzip") if name in accepted), None)


def _coding(item: str) -> tuple[str, float]:
    name, _, parameter = item.partition(";")
    key, _, weight = parameter.strip().partition("=")
    try:
        return name.strip().lower(), float(weight) if key == "q" else 1.0
    except ValueError:
        return "", 0.0


def compress(data: bytes, encoding: str) -> bytes:
    """`data` in the coding `encoding`, zstd or gzip, at its cheapest level."""
    if encoding == "zstd":
        return zstandard.ZstdCompressor(level=1).compress(data)
    compressor = zlib.compressobj(1, zlib.DEFLATED, _GZIP)
    return compressor.compress(data) + compressor.flush()

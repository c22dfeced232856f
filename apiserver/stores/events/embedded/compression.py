"""zstd at level 1, with one compressor and decompressor a thread: making them costs more than most uses."""

from __future__ import annotations

import threading

import zstandard

_LEVEL = 1


class _Codecs(threading.local):
    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=_LEVEL)
        self.decompressor = zstandard.ZstdDecompressor()


_codecs = _Codecs()


def compress(data: bytes | memoryview) -> bytes:
    """`data` as one zstd frame that knows its size."""
    return _codecs.compressor.compress(data)


def size_of(data: bytes | memoryview) -> int:
    """Bytes of the content of a frame made by `compress`."""
    return zstandard.frame_content_size(data)


def decompress(data: bytes | memoryview) -> bytes:
    """The content of a frame made by `compress`."""
    return _codecs.decompressor.decompress(data)

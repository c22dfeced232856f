"""zstd at level 1. Each thread keeps its compressor and decompressor, as making one takes longer than most uses."""

from __future__ import annotations

import threading

import zstandard

_LEVEL = 1


class _Codecs(threading.local):
    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=_LEVEL)
        self.checking = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
        self.decompressor = zstandard.ZstdDecompressor()


_codecs = _Codecs()


def compress(data: bytes | memoryview, *, checked: bool = False) -> bytes:
    """`data` as one zstd frame, which says how large its content is.

    With `checked`, the frame ends with a checksum (4 bytes), and whoever reads a damaged frame gets an error. It is for
    content that is kept without any other checksum.
    """
    return (_codecs.checking if checked else _codecs.compressor).compress(data)


def size_of(data: bytes | memoryview) -> int:
    """Bytes of the content of a frame that `compress` made."""
    return zstandard.frame_content_size(data)


def decompress(data: bytes | memoryview) -> bytes:
    """The content of a frame that `compress` made."""
    return _codecs.decompressor.decompress(data)

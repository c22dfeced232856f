"""Encodes numbers by pcodec: in few bytes, and bit by bit as they were. Encoding takes longer than `compression`.

A column is one pcodec chunk, in pages of `PAGE` numbers. So a part of it can be decoded without the rest:

    head     bytes of the header and of the chunk's metadata, numbers in a page and in the column
    sizes    bytes of each page
    header, metadata, pages

16,384 numbers are encoded in about a millisecond, during which other threads go on.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

#: Numbers of a page. Pages of 2,048 take 0.2 % more bytes than a single one.
PAGE = 2048
#: Higher levels take longer and save nothing that counts; level 4 takes two thirds of the time, and 2 % more bytes.
_LEVEL = 8
_HEAD = struct.Struct("<BHHI")
_SIZE = np.dtype("<u4")
_TYPES = {"<f4": "f32", "<f8": "f64", "<i8": "i64"}


def encode(column: npt.NDArray[Any], page: int = PAGE) -> bytes:
    """A contiguous column of float32, float64 or int64, at least one long, as bytes."""
    from pcodec import wrapped

    file = wrapped.FileCompressor()
    chunk = file.chunk_compressor(column, _config(column.dtype.kind, len(column), page))
    header, metadata = file.write_header(), chunk.write_meta()
    pages = [chunk.write_page(n) for n in range(len(chunk.n_per_page()))]
    sizes = np.array([len(page) for page in pages], _SIZE).tobytes()
    return b"".join((_HEAD.pack(len(header), len(metadata), page, len(column)), sizes, header, metadata, *pages))


def decode_into(encoded: memoryview, out: npt.NDArray[Any], start: int = 0) -> None:
    """Fill `out` with the numbers of the column from `start` on; its type is that of the column."""
    from pcodec import wrapped

    header, metadata, length, count = _HEAD.unpack_from(encoded)
    sizes = np.frombuffer(encoded, _SIZE, -(-count // length), _HEAD.size)
    content = encoded[_HEAD.size + sizes.nbytes :]
    file, _ = wrapped.FileDecompressor.new(bytes(content[:header]))
    end = header + metadata
    chunk, _ = file.chunk_decompressor(bytes(content[header:end]), _TYPES[out.dtype.str])
    stop = start + len(out)
    for first, size in zip(range(0, count, length), sizes.tolist(), strict=True):
        at, end, last = end, end + size, min(first + length, count)
        if start <= first and last <= stop:
            chunk.read_page_into(bytes(content[at:end]), last - first, out[first - start : last - start])
        elif start < last and first < stop:
            whole = np.empty(last - first, out.dtype)
            chunk.read_page_into(bytes(content[at:end]), last - first, whole)
            low, high = max(first, start), min(last, stop)
            out[low - start : high - start] = whole[low - first : high - first]


@lru_cache(64)
def _config(kind: str, length: int, page: int) -> Any:
    """How a column is encoded. Whole numbers here grow: their differences are encoded, without a search."""
    from pcodec import ChunkConfig, DeltaSpec, PagingSpec

    sizes = [min(page, length - first) for first in range(0, length, page)]
    delta = {"delta_spec": DeltaSpec.try_consecutive(1)} if kind == "i" else {}
    return ChunkConfig(compression_level=_LEVEL, paging_spec=PagingSpec.exact_page_sizes(sizes), **delta)

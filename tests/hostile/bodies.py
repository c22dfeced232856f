"""Bodies that cost a reader more than they cost who sends them. Each is made once, small on the wire by compression."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from functools import cache

import zstandard

#: The largest body that the server takes of known callers, inflated.
LARGEST = 16 * 2**20
_EMPTY_MEMBER = gzip.compress(b"", 1, mtime=0)


def _filled(opening: str, item: str, closing: str, size: int = LARGEST) -> bytes:
    """`opening`, then `item` as often as it fits, between commas, then `closing`."""
    count = (size - len(opening) - len(closing)) // (len(item) + 1)
    return (opening + ",".join([item] * count) + closing).encode()


def _wide(size: int = LARGEST) -> bytes:
    return ("{" + ",".join(f'"{n}":0' for n in range(size // 12)) + "}").encode()


#: By what is odd about it: JSON of at most 16 MB, or text that is not quite JSON.
JSON: dict[str, Callable[[], bytes]] = {
    "900 deep, 16,000 ones, NaN": lambda: ('{"a":' + "[" * 900 + "1," * 16_000 + "NaN" + "]" * 900 + "}").encode(),
    "ones and NaN": lambda: _filled('{"a":[', "1", ",NaN]}"),
    "many NaN": lambda: _filled('{"a":[', "NaN", "]}"),
    "infinities in objects": lambda: _filled('{"a":[', '{"value":-Infinity}', "]}"),
    "NaN at the end of an object": lambda: _filled('{"a":{"b":[', "1.5", ']},"value":NaN}'),
    "empty lists": lambda: _filled('{"a":[', "[]", "]}"),
    "empty objects": lambda: _filled('{"a":[', "{}", "]}"),
    "lists of lists": lambda: _filled('{"a":[', "[[[[1]]]]", "]}"),
    "two million ones": lambda: _filled('{"a":[', "1", "]}", 4 * 2**20),
    "1,000 deep": lambda: ('{"a":' + "[" * 1000 + "]" * 1000 + "}").encode(),
    "a million deep": lambda: b"[" * 2**20,
    "objects 16 MB deep": lambda: b'{"a":' * (LARGEST // 5),
    "a million names": _wide,
    "the same name": lambda: _filled("{", '"task":"a"', "}"),
    "a long text": lambda: b'{"task":"' + b"x" * (LARGEST - 20) + b'"}',
    "a long name": lambda: b'{"' + b"x" * (LARGEST - 20) + b'":1}',
    "escapes": lambda: b'{"task":"' + b"\\u0041" * (LARGEST // 6 - 10) + b'"}',
    "lone surrogates": lambda: b'{"task":"' + b"\\ud800" * (LARGEST // 6 - 10) + b'"}',
    "not UTF-8": lambda: b'{"task":"' + b"\xff\xfe" * (LARGEST // 2 - 20) + b'"}',
    "a long number": lambda: b'{"a":' + b"9" * (LARGEST - 20) + b"}",
    "a long fraction": lambda: b'{"a":0.' + b"1" * (LARGEST - 20) + b"}",
    "large exponents": lambda: _filled('{"a":[', "1e999999999", "]}"),
    "blanks": lambda: b" " * LARGEST,
    "line feeds": lambda: b"\n" * LARGEST,
    "a million short lines": lambda: b"{}\n" * (LARGEST // 3),
    "lines that are no events": lambda: b"[]\n" * (LARGEST // 3),
    "lines of NaN": lambda: b'{"type":"training_stats_scalar","task":"a","value":NaN}\n' * (LARGEST // 56),
    "odd lines of NaN": lambda: b'{"type":"training_stats_scalar","task":"a","ts":1,"value":NaN}\n' * (LARGEST // 500),
}


@cache
def compressed(name: str) -> bytes:
    """One of `JSON` by gzip: a few KB."""
    return gzip.compress(JSON[name](), 1, mtime=0)


def _gzip(body: bytes) -> bytes:
    return gzip.compress(body, 6, mtime=0)


def _raw_deflate(body: bytes) -> bytes:
    compressor = zlib.compressobj(6, zlib.DEFLATED, -15)
    return compressor.compress(body) + compressor.flush()


def _zstd(body: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=3).compress(body)


def _wide_window(log: int) -> bytes:
    """A zstd frame that asks its reader for a window of 2**log bytes."""
    return b"\x28\xb5\x2f\xfd\x00" + bytes([(log - 10) << 3]) + b"\x01\x00\x00"


_BOMB = bytes(2**28)
_OBJECT = b'{"a":1}'
_SKIPPABLE = b"\x50\x2a\x4d\x18" + (0).to_bytes(4, "little")

#: By what is odd about it: a coding, and a body in it.
ENCODED: dict[str, tuple[str, Callable[[], bytes]]] = {
    "gzip bomb": ("gzip", lambda: _gzip(_BOMB)),
    "deflate bomb": ("deflate", lambda: zlib.compress(_BOMB)),
    "raw deflate bomb": ("deflate", lambda: _raw_deflate(_BOMB)),
    "zstd bomb": ("zstd", lambda: _zstd(_BOMB)),
    "zstd bomb of many frames": ("zstd", lambda: _zstd(bytes(2**17)) * 50_000),
    "gzip in gzip": ("gzip", lambda: _gzip(_gzip(_BOMB))),
    "gzip, gzip": ("gzip, gzip", lambda: _gzip(_gzip(_OBJECT))),
    "empty gzip members": ("gzip", lambda: _EMPTY_MEMBER * 300_000),
    "gzip members of a byte": ("gzip", lambda: _gzip(b" ") * 250_000),
    "empty zstd frames": ("zstd", lambda: _zstd(b"") * 600_000),
    "skippable zstd frames": ("zstd", lambda: _SKIPPABLE * 700_000),
    "empty blocks of deflate": ("deflate", lambda: b"\x00\x00\x00\xff\xff" * 1_200_000),
    "cut off gzip": ("gzip", lambda: _gzip(_BOMB)[:-9]),
    "cut off zstd": ("zstd", lambda: _zstd(_BOMB)[:-1]),
    "gzip and more": ("gzip", lambda: _gzip(_OBJECT) + b"x" * 2**22),
    "deflate and more": ("deflate", lambda: zlib.compress(_OBJECT) + b"x" * 2**22),
    "zstd and more": ("zstd", lambda: _zstd(_OBJECT) + b"x" * 2**22),
    "no gzip": ("gzip", lambda: b"x" * 2**22),
    "wide zstd window": ("zstd", lambda: _wide_window(31)),
    "wrong sum": ("gzip", lambda: _gzip(_OBJECT)[:-8] + bytes(8)),
    "unknown": ("br", lambda: b"x" * 2**22),
    "many codings": (", ".join(["gzip"] * 5000), lambda: _gzip(_OBJECT)),
}


@cache
def encoded(name: str) -> bytes:
    """The body of one of `ENCODED`."""
    return ENCODED[name][1]()

"""Content codings, both ways."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib
from contextlib import suppress

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from apiserver.rpc.encodings import Inflating, accepted_encoding, compress, inflate
from apiserver.rpc.errors import ApiError

LIMIT = 2**20
TEXT = b'{"task": "a"}' * 1000


def raw_deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(data) + compressor.flush()


def zstd(data: bytes) -> bytes:
    return zstandard.compress(data)


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("gzip", gzip.compress(TEXT, mtime=0)),
        ("GZIP ", gzip.compress(TEXT, mtime=0)),
        ("x-gzip", gzip.compress(TEXT, mtime=0)),
        ("gzip", gzip.compress(TEXT[:5], mtime=0) + gzip.compress(TEXT[5:], mtime=0)),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", raw_deflate(TEXT)),
        ("zstd", zstd(TEXT)),
        ("zstd", zstd(TEXT[:5]) + zstd(TEXT[5:])),
        ("zstd", zstandard.ZstdCompressor(write_content_size=False).compress(TEXT)),
        ("identity", TEXT),
        ("", TEXT),
    ],
)
def test_bodies_are_decoded(encoding: str, data: bytes) -> None:
    assert inflate(data, encoding, LIMIT) == TEXT


@pytest.mark.parametrize("encoding", ["br", "compress", "gzip, gzip", "nope" * 1000])
def test_an_unknown_coding_is_415(encoding: str) -> None:
    with pytest.raises(ApiError) as refused:
        inflate(b"x", encoding, LIMIT)
    assert refused.value.code == 415
    assert len(refused.value.message) < 150


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
def test_corrupt_bodies_are_400(encoding: str) -> None:
    good = {"gzip": gzip.compress(TEXT), "deflate": zlib.compress(TEXT), "zstd": zstd(TEXT)}[encoding]
    for bad in (b"no such coding", good[:-5], good[:3], good + b"trailing junk", b"\x00" * 20):
        with pytest.raises(ApiError) as refused:
            inflate(bad, encoding, LIMIT)
        assert (refused.value.code, refused.value.subcode) == (400, 0), bad
        assert refused.value.message.startswith(f"The {encoding} body is corrupt")


def bomb(encoding: str, size: int) -> bytes:
    """`size` zeros, compressed piece by piece."""
    if encoding == "zstd":
        return zstandard.ZstdCompressor().compress(bytes(size))
    compressor = zlib.compressobj(1, zlib.DEFLATED, 31 if encoding == "gzip" else 15)
    return b"".join(compressor.compress(bytes(2**20)) for _ in range(size // 2**20)) + compressor.flush()


@pytest.mark.test
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
def test_a_bomb_stops_at_the_limit_with_bounded_memory(encoding: str) -> None:
    data = bomb(encoding, 64 * 2**20)
    tracemalloc.start()
    try:
        with pytest.raises(ApiError) as refused:
            inflate(data, encoding, LIMIT)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert refused.value.code == 413
    assert peak < 40 * 2**20


def test_many_small_streams_cannot_pass_the_limit_together() -> None:
    for encoding, data in (("gzip", gzip.compress(bytes(2**17)) * 9), ("zstd", zstd(bytes(2**17)) * 9)):
        with pytest.raises(ApiError) as refused:
            inflate(data, encoding, LIMIT)
        assert refused.value.code == 413


@pytest.mark.test
def test_so_many_streams_follow_one_another_and_no_more() -> None:
    for encoding, stream in (("gzip", gzip.compress(b"a")), ("zstd", zstd(b"a"))):
        assert inflate(stream * 1000, encoding, LIMIT) == b"a" * 1000
        for empty in (stream, gzip.compress(b"") if encoding == "gzip" else zstd(b"")):
            with pytest.raises(ApiError, match="more than 1000") as refused:
                inflate(empty * 1001, encoding, LIMIT)
            assert refused.value.code == 400


@pytest.mark.test
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd", "identity"])
def test_a_large_body_is_inflated_in_steps(encoding: str) -> None:
    data = bytes(8 * 2**20)
    packed = {"gzip": gzip.compress(data), "deflate": zlib.compress(data), "zstd": zstd(data)}.get(encoding, data)
    inflating, steps = Inflating(packed, encoding, len(data)), 0
    while not inflating.done:
        inflating.step()
        steps += 1
    assert inflating.content() == data
    assert inflating.size == len(data)
    assert steps > 1 or encoding == "identity"


def test_what_does_not_compress_is_fed_in_small_parts() -> None:
    data = random.Random(7).randbytes(2**20)
    assert inflate(gzip.compress(data[:-5]) + gzip.compress(data[-5:]), "gzip", LIMIT) == data
    assert inflate(raw_deflate(data), "deflate", LIMIT) == data


def test_exactly_the_limit_is_fine() -> None:
    for encoding, data in (("gzip", gzip.compress(bytes(LIMIT))), ("zstd", zstd(bytes(LIMIT)))):
        assert len(inflate(data, encoding, LIMIT)) == LIMIT


def test_a_window_larger_than_the_coding_allows_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=27, write_content_size=False)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    with pytest.raises(ApiError) as refused:
        inflate(compressor.compress(TEXT) + compressor.flush(), "zstd", LIMIT)
    assert refused.value.code == 400


@pytest.mark.test
@given(st.binary(max_size=200), st.sampled_from(["gzip", "deflate", "zstd"]))
def test_whatever_comes_is_decoded_or_a_clear_error(data: bytes, encoding: str) -> None:
    with suppress(ApiError):
        inflate(data, encoding, LIMIT)


@pytest.mark.parametrize(
    ("header", "encoding"),
    [
        ("", None),
        ("gzip, deflate", "gzip"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("ZSTD", "zstd"),
        ("zstd;q=0, gzip", "gzip"),
        ("zstd; q=0.0,gzip;q=0.5", "gzip"),
        ("gzip;q=0", None),
        ("gzip;q=x", None),
        ("identity", None),
        ("br", None),
        (",,;;", None),
    ],
)
def test_the_coding_of_an_answer_is_one_the_client_accepts(header: str, encoding: str | None) -> None:
    assert accepted_encoding(header) == encoding


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_answers_are_compressed(encoding: str) -> None:
    assert inflate(compress(TEXT, encoding), encoding, LIMIT) == TEXT
    assert len(compress(TEXT, encoding)) < len(TEXT) / 10

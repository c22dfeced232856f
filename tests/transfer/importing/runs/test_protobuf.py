"""Reading Protocol Buffers by described fields: what was written, and nothing but an error for anything else."""

from __future__ import annotations

import struct

import pytest

from apiserver.common.protobuf_wire import Malformed
from apiserver.transfer.importing.runs.protobuf import Float32, Message, field, parsed, repeated, text, unknown
from tests.transfer.importing.runs.tfevents import message, single, varint


class Inner(Message):
    name = field(1, bytes)


class Outer(Message):
    whole = field(1, int)
    double = field(2, float)
    inner = field(3, Inner)
    inners = repeated(4, Inner)
    wholes = repeated(5, int)
    singles = repeated(6, Float32)
    flag = field(7, bool)


def test_fields_have_their_names() -> None:
    data = message((1, -5), (2, 0.5), (3, message((1, "a"))), (4, message((1, "b"))), (4, b""), (7, 1))
    read = parsed(Outer, data)
    assert (read.whole, read.double, read.flag, read.inner.name) == (-5, 0.5, True, b"a")
    assert [inner.name for inner in read.inners] == [b"b", b""]
    assert [inner.HasField("name") for inner in read.inners] == [True, False]
    assert [described.name for described, _ in read.ListFields()] == ["whole", "double", "inner", "inners", "flag"]


def test_what_is_missing_is_empty() -> None:
    read = parsed(Outer, b"")
    assert (read.whole, read.double, read.flag, read.inner.name, list(read.wholes)) == (0, 0.0, False, b"", [])
    assert not read.HasField("inner")


def test_numbers_one_by_one_and_packed() -> None:
    wholes = message((5, 3), (5, varint(4) + varint(-5)))
    singles = single(6, 0.5) + message((6, struct.pack("<2f", 2.0, 0.25)))
    read = parsed(Outer, wholes + singles)
    assert list(read.wholes) == [3, 4, -5]
    assert list(read.singles) == [0.5, 2.0, 0.25]


def test_text_that_is_not_utf_8_costs_only_itself() -> None:
    assert text(parsed(Inner, message((1, b"a\xffb"))).name) == "a\ufffdb"


def test_fields_that_are_not_described_are_told() -> None:
    """Also in a group; those of another type than the described one are not."""
    group = varint(20 << 3 | 3) + message((1, 7)) + varint(20 << 3 | 4)
    read = parsed(Outer, message((9, 1), (9, 2), (12, b"x"), (1, b"not whole")) + group)
    assert unknown(read) == {9, 12, 20}
    assert not read.HasField("whole")
    assert unknown(parsed(Outer, message((1, 5)))) == set()


BROKEN = {
    "a length that lies": message((3, b"x"))[:-1] + varint(2**20),
    "a length of 2**62": varint(4 << 3 | 2) + varint(2**62) + b"x",
    "a length of 2**64 - 1": varint(4 << 3 | 2) + varint(2**64 - 1) + b"x",
    "a length beyond its message": message((4, varint(1 << 3 | 2) + varint(9) + b"x"), (1, 5)),
    "a number that does not end": b"\x08" + b"\xff" * 11,
    "floats that are not whole": message((6, b"12345")),
    "a group that does not end": varint(9 << 3 | 3),
    "a group that does not begin": varint(9 << 3 | 4),
    "groups in groups": varint(9 << 3 | 3) * 100_000 + varint(9 << 3 | 4) * 100_000,
    "the type 6": varint(9 << 3 | 6) + b"x",
    "the type 7": varint(9 << 3 | 7) + b"x",
    "the field 0": b"\x00\x00",
    "a field of 32 bits that is cut": single(6, 0.5)[:-1],
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN.keys())
def test_anything_else_is_malformed(data: bytes) -> None:
    with pytest.raises(Malformed, match="no message of Protocol Buffers"):
        parsed(Outer, data)


def test_what_is_nested_deep_is_not_read() -> None:
    """Only described messages are gone into, so nothing is as deep as a file says."""
    data = b""
    for _ in range(5000):
        data = message((4, data))
    assert len(parsed(Outer, data).inners) == 1

"""Reading Protocol Buffers: what was written, and nothing but an error for anything else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.protobuf_wire import BYTES, FIXED64, VARINT, Malformed, Message, fields
from tests.importing.runs.tfevents import Value, message, single, varint

INT64 = st.integers(-(2**63), 2**63 - 1)
VALUES = st.one_of(INT64, st.floats(allow_nan=False), st.binary(max_size=200))


@pytest.mark.test
@given(st.lists(st.tuples(st.integers(1, 2**29 - 1), VALUES), max_size=10, unique_by=lambda one: one[0]))
def test_fields_are_read_as_they_were_written(written: list[tuple[int, Value]]) -> None:
    data = message(*written)
    found = list(fields(data))
    types = {int: VARINT, float: FIXED64, bytes: BYTES}
    assert [(one.number, one.type) for one in found] == [(number, types[type(value)]) for number, value in written]
    read = Message(data)
    for number, value in written:
        if isinstance(value, int):
            assert (read.integer(number), read.integers(number)) == (value, [value])
        elif isinstance(value, float):
            assert read.float64(number) == value
        else:
            assert read.bytes(number) == value


@given(st.binary(max_size=300))
def test_anything_is_a_message_or_malformed(data: bytes) -> None:
    try:
        found = list(fields(data))
    except Malformed:
        return
    assert all(one.number > 0 and one.start <= one.stop <= len(data) for one in found)


def test_a_declared_length_takes_no_memory() -> None:
    for length in (2**31, 2**62, 2**64 - 1):
        with pytest.raises(Malformed, match="longer than its message"):
            list(fields(varint(1 << 3 | 2) + varint(length) + b"x"))
    with pytest.raises(Malformed, match="does not end"):
        list(fields(b"\x08" + b"\xff" * 11))


def test_numbers_one_by_one_and_packed() -> None:
    data = message((1, 3), (1, varint(4) + varint(-5))) + single(2, 0.5) + message((2, single(1, 2.0)[1:]))
    assert Message(data).integers(1) == [3, 4, -5]
    assert Message(data).floats(2, "<f4").tolist() == [0.5, 2.0]
    assert Message(message((3, b"12345"))).text(3) == "12345"
    with pytest.raises(Malformed, match="whole numbers"):
        Message(message((3, b"12345"))).floats(3, "<f8")
    assert (Message(b"").integer(1), Message(b"").float64(1), Message(b"").text(1)) == (0, 0.0, "")

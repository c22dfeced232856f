"""Reading Protocol Buffers: what was written, and nothing but an error for anything else."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.common.protobuf_wire import BYTES, FIXED64, VARINT, Malformed, fields, signed
from tests.transfer.importing.runs.tfevents import Value, message, varint

INT64 = st.integers(-(2**63), 2**63 - 1)
VALUES = st.one_of(INT64, st.floats(allow_nan=False), st.binary(max_size=200))


@pytest.mark.test
@given(st.lists(st.tuples(st.integers(1, 2**29 - 1), VALUES), max_size=10, unique_by=lambda one: one[0]))
def test_fields_are_read_as_they_were_written(written: list[tuple[int, Value]]) -> None:
    data = message(*written)
    found = list(fields(data))
    types = {int: VARINT, float: FIXED64, bytes: BYTES}
    assert [(one.number, one.type) for one in found] == [(number, types[type(value)]) for number, value in written]
    for field, (_, value) in zip(found, written, strict=True):
        content = data[field.start : field.stop]
        if isinstance(value, int):
            assert signed(field.value) == value
        else:
            assert content == (struct.pack("<d", value) if isinstance(value, float) else value)


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

"""Decoding CBOR: the examples of RFC 8949, and what ends too early or is no CBOR."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.stores.events.elasticsearch import cbor

EXAMPLES = {
    "00": 0,
    "17": 23,
    "1818": 24,
    "1903e8": 1000,
    "1bffffffffffffffff": 2**64 - 1,
    "20": -1,
    "3903e7": -1000,
    "3b7fffffffffffffff": -(2**63),
    "f93c00": 1.0,
    "fa47c35000": 100000.0,
    "fb3ff199999999999a": 1.1,
    "f4": False,
    "f5": True,
    "f6": None,
    "40": b"",
    "4401020304": b"\x01\x02\x03\x04",
    "5f42010243030405ff": b"\x01\x02\x03\x04\x05",
    "60": "",
    "62c3bc": "ü",
    "7f657374726561646d696e67ff": "streaming",
    "80": [],
    "8301820203820405": [1, [2, 3], [4, 5]],
    "9fff": [],
    "9f018202039f0405ffff": [1, [2, 3], [4, 5]],
    "a26161016162820203": {"a": 1, "b": [2, 3]},
    "bf61610161629f0203ffff": {"a": 1, "b": [2, 3]},
    "bf6346756ef563416d7421ff": {"Fun": True, "Amt": -2},
}


@pytest.mark.parametrize("encoded", EXAMPLES)
def test_decodes_every_kind_of_item(encoded: str) -> None:
    assert cbor.loads(bytes.fromhex(encoded)) == EXAMPLES[encoded]


def test_decodes_long_texts_and_bytes() -> None:
    for length in (24, 300, 70_000):
        size = length.to_bytes(4, "big")
        assert cbor.loads(b"\x5a" + size + b"\xff" * length) == b"\xff" * length
        assert cbor.loads(b"\x7a" + size + b"x" * length) == "x" * length


@pytest.mark.parametrize("whole", [example for example in EXAMPLES if len(example) > 2])
def test_finds_out_that_an_item_ends_too_early(whole: str) -> None:
    with pytest.raises((ValueError, IndexError)):
        cbor.loads(bytes.fromhex(whole)[:-1])


@pytest.mark.parametrize("encoded", ["c074", "f7", "f820", "bf01ff"])
def test_refuses_what_elasticsearch_does_not_answer(encoded: str) -> None:
    with pytest.raises((ValueError, IndexError)):
        cbor.loads(bytes.fromhex(encoded))


def test_the_answer_of_a_node_with_a_hit() -> None:
    hit: dict[str, Any] = cbor.loads(
        b"\xbf\x67_seq_no\x18\x2a\x66fields\xbf\x65curve\x9f\x43\x01\x02\x03\xff\x62id\x9f\x61x\xff\xff\xff"
    )
    assert hit == {"_seq_no": 42, "fields": {"curve": [b"\x01\x02\x03"], "id": ["x"]}}

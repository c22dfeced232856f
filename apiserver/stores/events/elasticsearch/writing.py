"""Makes the items of bulk requests from samples. An item is an action and its document: two lines of JSON.

A sample replaces the sample of the same identity. A large one has the field `large` with its size, so that readers know
it before they ask for the text (`paging.py`).
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Iterator, Sequence

import orjson
import zstandard

from apiserver.common.answers import will_read
from apiserver.events.model import JsonObject, Sample
from apiserver.stores.events.codec import compression
from apiserver.stores.events.elasticsearch import names

_LEAST_COMPRESSED = 256


def index_of(prefix: str, sample: Sample) -> str:
    """The index of a sample."""
    return names.index(prefix, sample.type, sample.owner.company)


def items(prefix: str, samples: Sequence[Sample], large: int) -> Iterator[str]:
    """The samples as items, in their order. Those are `large` whose text in a node's answer has so many bytes."""
    for sample in samples:
        key = names.owner_key(sample.owner)
        id = names.id_of(names.series_hash(key, sample.metric, sample.variant, sample.key), sample.iter)
        document = b2a_base64(packed(sample.document), newline=False).decode()
        fields: JsonObject = {
            "owner": key,
            "metric": sample.metric,
            "variant": sample.variant,
            "series": names.series_of(key, sample.metric, sample.variant),
            "key": sample.key,
            "iter": sample.iter,
            "timestamp": sample.timestamp,
            **({"large": len(document)} if len(document) >= large else {}),
            "document": document,
        }
        action = {"index": {"_index": index_of(prefix, sample), "routing": key, "_id": id}}
        yield f"{orjson.dumps(action).decode()}\n{orjson.dumps(fields).decode()}\n"


def repeats(samples: Sequence[Sample]) -> bool:
    """Whether a sample may replace another one of these."""
    identities = {(one.owner, one.type, one.metric, one.variant, one.iter, one.key) for one in samples}
    return len(identities) < len(samples)


def packed(document: bytes) -> bytes:
    """The document as it is stored: from 256 bytes up as a zstd frame, which never begins like JSON."""
    return compression.compress(document) if len(document) >= _LEAST_COMPRESSED else document


def unpacked(stored: bytes) -> bytes:
    """The document from its stored form."""
    if not stored.startswith(zstandard.FRAME_HEADER):
        return stored
    will_read(compression.size_of(stored))
    return compression.decompress(stored)

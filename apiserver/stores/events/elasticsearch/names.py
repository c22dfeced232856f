"""Where an event is: its index, its owner's key, its series' key, and its id.

An index holds the events of one type and company. Ids are made of the event's identity, so that the same event sent
again takes its own place: 16 bytes of BLAKE2b for the series, then 8 bytes for the iteration (or the line's number).
Those of one series share their beginning and are as cheap to keep as numbers.
"""

from __future__ import annotations

import hashlib
import re
from base64 import urlsafe_b64encode
from binascii import b2a_base64
from collections.abc import Iterable

import numpy as np

from apiserver.events.model import EventType, Int64Array, Owner
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.base import EventStoreError

_PLAIN = re.compile(r"[a-z0-9_-]{1,64}")
#: Names of indices have up to 255 bytes.
_LONGEST = 180
_HASH_BYTES = 16
_ID_BYTES = _HASH_BYTES + 8
_ID_CHARACTERS = _ID_BYTES * 4 // 3
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_SIGN = np.uint64(1 << 63)


def index(prefix: str, type: EventType, company: str) -> str:
    """The index of the company's events of a type. Odd names are written in hex: what has no index is an error."""
    plain = company if _PLAIN.fullmatch(company) else f"~{company.encode().hex()}"
    if len(plain) > _LONGEST:
        raise EventStoreError(f"the name of a company is too long for Elasticsearch: {company[:50]}…")
    return f"{prefix}-{type.plural}-{plain}"


def index_of(prefix: str, series: SeriesQuery) -> str:
    """Where the events of the series are."""
    return index(prefix, series.type, series.owner.company)


def indices(prefix: str) -> list[str]:
    """Patterns that match all indices of events."""
    return [f"{prefix}-{type.plural}-*" for type in EventType]


def company_of(prefix: str, index: str) -> str:
    """The company whose events are in the index."""
    plain = index.removeprefix(f"{prefix}-").partition("-")[2]
    return bytes.fromhex(plain[1:]).decode() if plain.startswith("~") else plain


def owner_key(owner: Owner) -> str:
    """What the field `owner` holds, and what routes."""
    return f"{'model' if owner.is_model else 'task'}:{owner.id}"


def owner_of(company: str, key: str) -> Owner:
    """The owner with this key."""
    kind, _, id = key.partition(":")
    return Owner(company, id, kind == "model")


def series_hash(*names: str) -> bytes:
    """16 bytes for a series of an owner, or for whatever else these names identify together."""
    return _digest(*names)


def series_key(hashed: bytes) -> str:
    """What the field `series` holds."""
    return urlsafe_b64encode(hashed).rstrip(b"=").decode()


def ids(hashed: bytes, numbers: Int64Array) -> list[str]:
    """The id of each number (an iteration, or that of a line) of what was hashed."""
    raw = np.empty((len(numbers), _ID_BYTES), np.uint8)
    raw[:, :_HASH_BYTES] = np.frombuffer(hashed, np.uint8)
    ordered = numbers.astype(np.int64).view(np.uint64) ^ _SIGN
    raw[:, _HASH_BYTES:] = ordered.astype(">u8").view(np.uint8).reshape(-1, 8)
    text = b2a_base64(raw.tobytes(), newline=False).translate(_URL_SAFE).decode()
    return [text[start : start + _ID_CHARACTERS] for start in range(0, len(text), _ID_CHARACTERS)]


def _digest(*names: str) -> bytes:
    """Of names that cannot be confused: each begins with its length."""
    return hashlib.blake2b(b"".join(_counted(names)), digest_size=_HASH_BYTES).digest()


def _counted(names: Iterable[str]) -> Iterable[bytes]:
    for name in names:
        encoded = name.encode()
        yield len(encoded).to_bytes(4, "big")
        yield encoded

"""Names the index of an event, its owner's key, its series' key, and the id of a sample.

An index has the samples of one type and company, or blocks of their points or log lines. The id of a sample is made
from its identity, so a sample that is sent again replaces itself: 16 bytes of BLAKE2b for the series, then 8 bytes for
the iteration. The ids of a series share their beginning, so they take as little room as numbers.
"""

from __future__ import annotations

import hashlib
import re
from base64 import urlsafe_b64encode
from functools import lru_cache

from apiserver.events.model import SAMPLE_TYPES, EventType, Owner
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.base import EventStoreError

_PLAIN = re.compile(r"[a-z0-9_-]{1,64}")
#: Names of indices have up to 255 bytes.
_LONGEST = 180
_HASH_BYTES = 16
_BLOCKS = "blocks"


@lru_cache(1024)
def index(prefix: str, type: EventType, company: str) -> str:
    """The index of the company's events of a type. Odd names are written in hex; too long ones are an error."""
    plain = company if _PLAIN.fullmatch(company) else f"~{company.encode().hex()}"
    if len(plain) > _LONGEST:
        raise EventStoreError(f"the name of a company is too long for Elasticsearch: {company[:50]}…")
    return f"{prefix}-{type.plural}-{plain}"


def blocks(prefix: str, type: EventType, company: str) -> str:
    """The index of the blocks of the company's events of a type."""
    return index(f"{prefix}-{_BLOCKS}", type, company)


def blocks_of_all(prefix: str, type: EventType) -> str:
    """A pattern that matches the indices of blocks of this type, of all companies."""
    return f"{prefix}-{_BLOCKS}-{type.plural}-*"


def is_of_blocks(prefix: str, index: str) -> bool:
    """Whether the index has blocks."""
    return index.startswith(f"{prefix}-{_BLOCKS}-")


def index_of(prefix: str, series: SeriesQuery) -> str:
    """The index of the samples of the series."""
    return index(prefix, series.type, series.owner.company)


def indices(prefix: str) -> list[str]:
    """Patterns that match all indices of samples and of blocks."""
    return [*(f"{prefix}-{type.plural}-*" for type in SAMPLE_TYPES), f"{prefix}-{_BLOCKS}-*"]


def company_of(prefix: str, index: str) -> str:
    """The company whose events are in the index."""
    plain = index.removeprefix(f"{prefix}-").removeprefix(f"{_BLOCKS}-").partition("-")[2]
    return bytes.fromhex(plain[1:]).decode() if plain.startswith("~") else plain


def owner_key(owner: Owner) -> str:
    """The owner's key: the value of the field `owner`, and the routing."""
    return f"{'model' if owner.is_model else 'task'}:{owner.id}"


def owner_of(company: str, key: str) -> Owner:
    """The owner with this key."""
    kind, _, id = key.partition(":")
    return Owner(company, id, kind == "model")


def series_hash(*names: str) -> bytes:
    """16 bytes for a series of an owner, or for anything else that these names identify together."""
    encoded = [name.encode() for name in names]
    counted = [len(name).to_bytes(4, "big") + name for name in encoded]  # ("ab", "c") and ("a", "bc") differ
    return hashlib.blake2b(b"".join(counted), digest_size=_HASH_BYTES).digest()


def series_key(hashed: bytes) -> str:
    """The value of the field `series`."""
    return urlsafe_b64encode(hashed).rstrip(b"=").decode()


@lru_cache(maxsize=65536)
def series_of(owner: str, metric: str, variant: str) -> str:
    """The key of a series of the owner with this key."""
    return series_key(series_hash(owner, metric, variant))


def id_of(hashed: bytes, number: int) -> str:
    """The id of the sample with this hash and this number: its iteration."""
    return urlsafe_b64encode(hashed + (number + 2**63).to_bytes(8, "big")).decode()

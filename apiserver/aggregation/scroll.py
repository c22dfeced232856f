"""Stateless scroll ids: a position in a walk, bound to the query it belongs to, encoded and signed.

Any server with the same secret can go on with a walk, at any time; a forged, foreign or mismatched id is refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Any

import msgspec

_SIGNATURE_BYTES = 12


class InvalidScroll(Exception):
    """The scroll id is not one of ours, or belongs to another query."""

    def __init__(self, scroll_id: str) -> None:
        super().__init__(scroll_id)
        self.scroll_id = scroll_id


class Scrolls:
    """Makes and reads the scroll ids of one installation."""

    def __init__(self, secret: str) -> None:
        self._key = hashlib.blake2b(secret.encode(), digest_size=32, person=b"scroll").digest()

    def encode(self, query: tuple[Any, ...], position: Any) -> str:
        """The scroll id for `position` (plain values and lists of them) in the walk that `query` describes."""
        payload = msgspec.msgpack.encode(position)
        return base64.urlsafe_b64encode(self._sign(query, payload) + payload).decode().rstrip("=")

    def decode(self, query: tuple[Any, ...], scroll_id: str) -> Any:
        """The position of a scroll id that `encode` made for the same query; raises InvalidScroll."""
        try:
            raw = base64.b64decode(scroll_id + "=" * (-len(scroll_id) % 4), altchars=b"-_", validate=True)
        except (ValueError, binascii.Error):
            raise InvalidScroll(scroll_id) from None
        signature, payload = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._sign(query, payload)):
            raise InvalidScroll(scroll_id)
        return msgspec.msgpack.decode(payload)

    def _sign(self, query: tuple[Any, ...], payload: bytes) -> bytes:
        signed = msgspec.msgpack.encode([query, payload])
        return hashlib.blake2b(signed, digest_size=_SIGNATURE_BYTES, key=self._key).digest()

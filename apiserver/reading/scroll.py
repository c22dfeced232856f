"""Stateless scroll ids. A scroll id has the position in a walk itself, so no server has to remember it.

The id is signed, together with the query it belongs to. So every server with the same secret can go on with the walk,
at any time. An id that was changed, or made for another query or by another installation, is refused.

For example, a page of task t1 ends at iteration 5. The id for the next page is the Base64 of twelve bytes and of
MessagePack's encoding of 5. The twelve bytes are a keyed hash of the query and the position. A reader who sends this id
with task t2, or with a 6 in place of the 5, sends a hash that does not fit, and gets InvalidScroll.
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
    """The scroll id was not made by this installation, or belongs to another query."""

    def __init__(self, scroll_id: str) -> None:
        super().__init__(scroll_id)
        self.scroll_id = scroll_id


class Scrolls:
    """Makes and reads the scroll ids of one installation."""

    def __init__(self, secret: str) -> None:
        self._key = hashlib.blake2b(secret.encode(), digest_size=32, person=b"scroll").digest()

    def encode(self, query: tuple[Any, ...], position: Any) -> str:
        """The scroll id of a position (plain values and lists of them) in the walk over what `query` asks for."""
        payload = msgspec.msgpack.encode(position)
        return base64.urlsafe_b64encode(self._sign(query, payload) + payload).decode().rstrip("=")

    def decode(self, query: tuple[Any, ...], scroll_id: str) -> Any:
        """The position of a scroll id that `encode` made for the same query. InvalidScroll for any other."""
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

"""What errors of HTTP say is bounded, whatever they are about."""

from __future__ import annotations

from apiserver.rpc.errors import ApiError


def test_no_message_is_long() -> None:
    assert len(ApiError(400, 12, "x" * 100_000).message) < 4100

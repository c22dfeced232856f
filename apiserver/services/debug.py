"""debug.*: shows that a client reaches the server."""

from __future__ import annotations

from typing import Any

from apiserver.services.backend import Call, endpoint


@endpoint("debug.ping", "1.0", anonymous=True)
async def ping(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return {"msg": "events-apiserver"}

"""login.*: what a login page needs before, and after, anybody is logged in."""

from __future__ import annotations

from typing import Any

from apiserver.rpc.call import ANONYMOUS
from apiserver.services.auth import set_cookie
from apiserver.services.backend import Call, endpoint


@endpoint("login.supported_modes", "1.0", anonymous=True)
async def supported_modes(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return {
        "authenticated": call.identity != ANONYMOUS,
        "basic": {"enabled": True, "guest": {"enabled": False}},
        "sso": {},
        "sso_providers": [],
    }


@endpoint("login.logout", "1.0", anonymous=True)
async def logout(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    set_cookie(call, "", 0)
    return {}

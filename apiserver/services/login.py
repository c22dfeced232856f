"""login.*: what a login page needs before, and after, anybody is logged in."""

from __future__ import annotations

from typing import Any

from apiserver.rpc.call import ANONYMOUS
from apiserver.rpc.errors import ApiError
from apiserver.services.access.fixed_users import login_modes
from apiserver.services.access.sessions import end_session
from apiserver.services.backend import Call, endpoint


@endpoint("login.supported_modes", "1.0", anonymous=True)
async def supported_modes(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return {
        "authenticated": call.identity != ANONYMOUS,
        "basic": login_modes(call.backend.settings),
        "sso": {},
        "sso_providers": [],
        "server_errors": {},
    }


@endpoint("login.logout", "1.0", anonymous=True)
async def logout(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    if call.identity == ANONYMOUS:
        await _refuse_foreign_pages(call)
    await end_session(call)
    return {}


async def _refuse_foreign_pages(call: Call) -> None:
    """Who has no login may still want to lose its cookie; but no other page may log its user out."""
    try:
        await call.backend.auth.authenticate(call.headers, method=call.method, client=call.client)
    except ApiError as error:
        if error.code == 403:
            raise

"""login.*: the questions of a login page before a user logs in, and logging out."""

from __future__ import annotations

from typing import Any

from apiserver.common.errors import Refusal, Why
from apiserver.rpc.call import ANONYMOUS
from apiserver.services.access.fixed_users import login_modes
from apiserver.services.access.oidc.sign_in import provider_modes, sign_out_address
from apiserver.services.access.sessions import end_session
from apiserver.services.backend import Call, endpoint


@endpoint("login.supported_modes", "1.0", anonymous=True)
async def supported_modes(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return {
        "authenticated": call.identity != ANONYMOUS,
        "basic": login_modes(call.backend.settings),
        "provider": provider_modes(call.backend.settings),
        "sso": {},
        "sso_providers": [],
        "server_errors": {},
    }


@endpoint("login.logout", "1.0", anonymous=True)
async def logout(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    if call.identity == ANONYMOUS:
        try:
            await call.backend.auth.authenticate(call.headers, method=call.method, client=call.client)
        except Refusal as error:
            # Forbidden means that the call comes from another site's page, which must not log the user out. Every other
            # caller without a valid login may have the cookie cleared.
            if error.why is Why.FORBIDDEN:
                raise
    address = await sign_out_address(call)
    await end_session(call)
    return {} if address is None else {"url": address}

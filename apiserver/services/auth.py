"""auth.*: logging in, and the access keys of users."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from apiserver.rpc.auth import TOKEN_COOKIE
from apiserver.rpc.call import Identity
from apiserver.rpc.errors import ApiError, forbidden, invalid_id, unauthorized, validation_error
from apiserver.services import credentials
from apiserver.services.backend import Call, documents, endpoint
from apiserver.services.roles import is_admin, require_admin
from apiserver.stores.documents.base import DuplicateDocument

SHORTEST_TOKEN = 3600
"""Seconds; SDK clients log in again when less than six minutes are left."""
LONGEST_TOKEN = 365 * 86400


@endpoint("auth.login", "1.0")
async def login(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    asked = request.get("expiration_sec")
    seconds = call.backend.settings.token_lifetime if asked is None else asked
    seconds = min(max(seconds, SHORTEST_TOKEN), LONGEST_TOKEN)
    token = call.backend.auth.issue(await _login_as(call), seconds)
    if call.identity.key:
        await credentials.mark_used(call.backend.documents, call.identity.key, call.worker)
    set_cookie(call, token, seconds)
    return {"token": token}


async def _login_as(call: Call) -> Identity:
    """The caller as they are now; for an admin who asks for it by header, another user of the company."""
    wanted = call.headers.get("x-clearml-impersonate-as") or call.identity.user
    if wanted != call.identity.user and not is_admin(call):
        raise forbidden("only admins log in as other users")
    user = await documents(call).find_one("users", {"id": wanted})
    if user is None and wanted == call.identity.user:
        raise unauthorized(30, "Invalid token (its user is no longer there)")
    if user is None:
        raise invalid_id("user", wanted)
    return replace(call.identity, user=user["id"], user_name=user["name"], role=user["role"])


def set_cookie(call: Call, token: str, seconds: int) -> None:
    """Have the browser keep the token, or forget it at 0 seconds."""
    cookie = f"{TOKEN_COOKIE}={token}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Lax"
    call.response_headers.append(("Set-Cookie", cookie))


@endpoint("auth.create_credentials", "1.0")
async def create_credentials(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    user = await documents(call).find_one("users", {"id": call.identity.user})
    if user is None:
        raise invalid_id("user", call.identity.user)
    label = request.get("label")
    made = await credentials.create_credential(call.backend.documents, user, label)
    return {"credentials": {"access_key": made.key, "secret_key": made.secret, "label": label}}


@endpoint("auth.get_credentials", "1.0")
async def get_credentials(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    keys = await documents(call).find("credentials", {"user": call.identity.user}, sort=[("created", 1)])
    return {
        "credentials": [
            {
                "access_key": key["key"],
                "label": key["label"],
                "last_used": key["last_used"],
                "last_used_from": key["last_used_from"],
            }
            for key in keys
        ]
    }


@endpoint("auth.edit_credentials", "1.0")
async def edit_credentials(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    own_key = {"user": call.identity.user, "key": request["access_key"]}
    updated = await documents(call).update("credentials", own_key, {"$set": {"label": request.get("label")}})
    if not updated:
        raise unknown_key(request["access_key"])
    return {"updated": updated}


@endpoint("auth.revoke_credentials", "1.0")
async def revoke_credentials(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    identity = call.identity
    revoked = await credentials.revoke(call.backend.documents, identity.company, request["access_key"], identity.user)
    if not revoked:
        raise unknown_key(request["access_key"])
    return {"revoked": revoked}


@endpoint("auth.create_user", "1.0")
async def create_user(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    require_admin(call)
    company = call.identity.company
    if request.get("company") not in (None, "", company):
        raise validation_error("users are added to the caller's own company only", field="company")
    given = {field: request.get(field) for field in ("given_name", "family_name", "email")}
    try:
        user = await credentials.add_user(call.backend.documents, company, request["name"], request["role"], **given)
    except DuplicateDocument:
        raise name_taken(request["name"]) from None
    return {"id": user["id"]}


@endpoint("auth.edit_user", "1.0")
async def edit_user(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    require_admin(call)
    if request["user"] == call.identity.user:
        raise validation_error("admins do not change their own role", field="user")
    fields = {"role": request["role"]} if request.get("role") is not None else {}
    updated = await credentials.update_user(call.backend.documents, call.identity.company, request["user"], fields)
    if not updated:
        raise invalid_id("user", request["user"])
    return {"updated": updated, "fields": fields}


def unknown_key(key: str) -> ApiError:
    """The caller has no such access key."""
    return ApiError(400, 1002, f"Invalid credentials key: access_key={key}")


def name_taken(name: str) -> ApiError:
    """Another user of the company has that name."""
    return ApiError(400, 1003, f"User name is in use: name={name}")

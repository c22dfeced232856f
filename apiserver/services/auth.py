"""auth.*: logging in and out, tokens, and the access keys of users."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

from apiserver.common.errors import Refusal, Why, forbidden, invalid_id, validation_error
from apiserver.rpc.call import ANONYMOUS, Grant
from apiserver.services.access import credentials
from apiserver.services.access.fixed_users import login_modes
from apiserver.services.access.identities import is_access_key, of_user
from apiserver.services.access.oidc import sign_in
from apiserver.services.access.password_login import caller_of
from apiserver.services.access.roles import ASSIGNABLE, LOGIN_PAGE, USER, is_admin
from apiserver.services.access.scopes import SCOPES, fields_of
from apiserver.services.access.sessions import end_session, log_in, set_cookie
from apiserver.services.access.sign_in_links import by_link
from apiserver.services.backend import Call, documents, endpoint
from apiserver.stores.documents.base import DuplicateDocument
from apiserver.stores.documents.query import Update


@endpoint("auth.login", "1.0", anonymous=True)
async def login(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    caller = call.identity if call.identity != ANONYMOUS else await caller_of(call)
    token, seconds = await log_in(call, caller, request.get("expiration_sec"))
    call.identity = caller
    if caller.key and is_access_key(caller.key):
        await call.backend.key_uses.logged_in(caller.key, call.worker or call.client)
    set_cookie(call, token, seconds)
    return {"token": token}


@endpoint("auth.login_by_link", "1.0", anonymous=True)
async def login_by_link(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    call.identity = await by_link(call, request["link"])
    token, seconds = await log_in(call, call.identity, None)
    set_cookie(call, token, seconds)
    return {}


@endpoint("auth.begin_provider_login", "2.34", anonymous=True)
async def begin_provider_login(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return {"url": await sign_in.begin(call, request["next"])}


@endpoint("auth.finish_provider_login", "2.34", anonymous=True)
async def finish_provider_login(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    call.identity, id_token, next = await sign_in.finish(call, request)
    token, seconds = await log_in(call, call.identity, None)
    await sign_in.keep_id_token(call, token, id_token)
    set_cookie(call, token, seconds)
    return {"next": next}


@endpoint("auth.logout", "1.0")
async def logout(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    await end_session(call)
    return {}


@endpoint("auth.get_token_for_user", "1.0")
async def get_token_for_user(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    caller = call.identity
    user = await of_user(call.backend.documents, request["user"])
    if user is None or user.company != caller.company or request.get("company") not in (None, "", caller.company):
        raise invalid_id("user", request["user"])
    if user.user != caller.user and not is_admin(call):
        raise forbidden("only admins may get tokens for other users")
    ending_with_the_callers = replace(
        user,
        key=caller.key,
        session=caller.session,
        logged_in=caller.logged_in,
        grant=caller.grant,
        acted_by=caller.acted_by or ("" if user.user == caller.user else caller.user),
    )
    token, _ = await log_in(call, ending_with_the_callers, request.get("expiration_sec"))
    return {"token": token}


@endpoint("auth.validate_token", "1.0")
async def validate_token(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    try:
        identity = await call.backend.auth.by_token(request["token"])
    except Refusal as error:
        return {"valid": False, "msg": error.message}
    if identity.company != call.identity.company:
        return {"valid": False, "msg": "Invalid token (it is not of this company)"}
    return {"valid": True, "user": identity.user, "company": identity.company}


@endpoint("auth.fixed_users_mode", "1.0", anonymous=True)
async def fixed_users_mode(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return {**login_modes(call.backend.settings), "server_errors": {}}


@endpoint("auth.create_credentials", "1.0")
async def create_credentials(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    user = await documents(call).find_one("users", {"id": call.identity.user})
    if user is None:
        raise invalid_id("user", call.identity.user)
    label, grant = request.get("label"), await _asked_grant(call, request)
    made = await credentials.create_credential(call.backend.documents, user, label, grant)
    answer = {"access_key": made.key, "secret_key": made.secret, "label": label}
    return {"credentials": {**answer, **fields_of(grant)}}


async def _asked_grant(call: Call, request: dict[str, Any]) -> Grant:
    """The rights of a new key. They end when the key of the caller ends, or earlier."""
    asked, seconds, project = request.get("scopes"), request.get("expiration_sec"), request.get("project")
    if project is not None and not await documents(call).count("projects", {"id": project}):
        raise invalid_id("project", project)
    scopes = None if asked is None else tuple(scope for scope in SCOPES if scope in asked)
    ends = min(math.inf if seconds is None else time.time() + seconds, call.identity.grant.expires)
    return Grant(scopes, project, ends)


@endpoint("auth.get_credentials", "1.0")
async def get_credentials(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    keys = await documents(call).find("credentials", {"user": call.identity.user}, sort=[("created", 1)])
    shown = ("label", "last_used", "last_used_from", "created", "scopes", "project", "expires")
    return {"credentials": [{"access_key": key["key"], **{name: key.get(name) for name in shown}} for key in keys]}


@endpoint("auth.edit_credentials", "1.0")
async def edit_credentials(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    own_key = {"user": call.identity.user, "key": request["access_key"]}
    updated = await documents(call).update("credentials", own_key, Update(set={"label": request.get("label")}))
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
    if (request["role"] != USER or request["service"]) and not is_admin(call):
        raise forbidden("only admins may add admins and service accounts")
    given = {field: request.get(field) for field in ("given_name", "family_name", "email", "avatar")}
    # The login page sends the company that its copy of the web UI was built with, so it is not checked.
    company = call.identity.company if call.identity.role == LOGIN_PAGE else own_company(call, request.get("company"))
    try:
        user = await credentials.add_user(
            call.backend.documents, company, request["name"], request["role"], service=request["service"], **given
        )
    except DuplicateDocument:
        raise name_taken(request["name"]) from None
    return {"id": user["id"]}


@endpoint("auth.edit_user", "1.0")
async def edit_user(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    if request["user"] == call.identity.user:
        raise validation_error("admins cannot change their own role", field="user")
    fields = {"role": request["role"]} if request.get("role") is not None else {}
    user = await documents(call).find_one("users", {"id": request["user"]}, projection=["role"])
    if user is None or user["role"] not in ASSIGNABLE:  # the guest and the login page keep their roles
        raise invalid_id("user", request["user"])
    updated = await credentials.update_user(call.backend.documents, call.identity.company, request["user"], fields)
    if not updated:
        raise invalid_id("user", request["user"])
    return {"updated": updated, "fields": fields}


def own_company(call: Call, company: str | None) -> str:
    """The caller's company, as users are added to no other. Raises Refusal(INVALID) if the request names another."""
    if company not in (None, "", call.identity.company):
        raise validation_error("users can only be added to the caller's company", field="company")
    return call.identity.company


def unknown_key(key: str) -> Refusal:
    """The error for an access key that the caller does not have."""
    return Refusal(Why.NO_ACCESS_KEY, f"Invalid access key: access_key={key}")


def name_taken(name: str) -> Refusal:
    """The error for a name that another user of the company has."""
    return Refusal(Why.NAME_IN_USE, f"The user's name is in use: name={name}")

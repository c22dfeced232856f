"""users.*: the users of the caller's company, and their preferences.

Preferences are stored as JSON text, because the user interface chooses their names, and a name may hold any character.
A change replaces the text only if nobody else changed it meanwhile; otherwise it is tried again.
"""

from __future__ import annotations

import json
from typing import Any

from apiserver.common.errors import Refusal, Why, forbidden, invalid_id, unavailable, validation_error
from apiserver.services.access import credentials
from apiserver.services.access.identities import PASSWORDS
from apiserver.services.access.roles import GUEST, LOGIN_PAGE, USER, is_admin
from apiserver.services.access.sessions import end_sessions, sessions_of
from apiserver.services.auth import name_taken, own_company
from apiserver.services.backend import Call, documents, endpoint
from apiserver.services.lists.conditions import QuerySpec, build_filter
from apiserver.services.lists.fields import fields_of
from apiserver.services.lists.order import sort_of
from apiserver.services.lists.paging import page_of
from apiserver.services.lists.references import PUBLIC_FIELDS
from apiserver.services.projects.tree import PROJECTS, with_descendants
from apiserver.stores.documents.base import DuplicateDocument
from apiserver.stores.documents.query import Document, Filter, In, Unequal, Update, all_of

FIELDS = PUBLIC_FIELDS["users"]
SPEC = QuerySpec(lists=("id", "role"), times=())
MAX_PREFERENCES = 2**20
MAX_DEPTH = 64
MOST_SESSIONS = 1000
ATTEMPTS = 20

GETTING_STARTED = {
    "agentName": "clearml",
    "configure": "clearml-init",
    "install": "pip install clearml",
    "packageName": "clearml",
}


async def current_user(call: Call) -> Document:
    """The caller's document. Raises Refusal(NO_USER) if the user was deleted after the token was issued."""
    user = await documents(call).find_one("users", {"id": call.identity.user})
    if user is None:
        raise invalid_id("user", call.identity.user)
    return user


def public(user: Document) -> Document:
    return {field: user[field] for field in FIELDS if field in user}


@endpoint("users.get_current_user", "1.0")
async def get_current_user(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    user = public(await current_user(call))
    company = await documents(call).find_one("companies", {"id": user["company"]})
    answer: dict[str, Any] = {
        "user": {**user, "company": {"id": user["company"], "name": company["name"] if company else ""}},
        "getting_started": GETTING_STARTED,
        "settings": {"max_download_items": 50000},
    }
    if request["get_supported_features"]:
        answer["features"] = []
    return answer


@endpoint("users.get_all", "1.0")
async def get_all(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return await _find(call, request, {})


@endpoint("users.get_all_ex", "1.0")
async def get_all_ex(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return await _find(call, request, await _active(call, request))


async def _active(call: Call, request: dict[str, Any]) -> Filter:
    """The condition for users who made something in `active_in_projects` or below; anywhere if that list is empty."""
    projects = request.get("active_in_projects")
    if projects is None:
        return {}
    ids = In(await with_descendants(call, projects))
    made = [("tasks", "project"), ("models", "project"), (PROJECTS, "id")]
    active = [await documents(call).distinct(kind, "user", {field: ids} if projects else {}) for kind, field in made]
    return {"id": In(sorted({user for users in active for user in users if user}))}


async def _find(call: Call, request: dict[str, Any], condition: Filter) -> dict[str, Any]:
    page = page_of(request)
    users = await documents(call).find(
        "users",
        all_of([build_filter(request, SPEC), condition, {"role": Unequal(LOGIN_PAGE)}]),
        projection=[field for field in fields_of(request).answered or FIELDS if field in FIELDS] or ["id"],
        sort=[(path, way) for path, way in sort_of(request, (("name", 1),)) if path in FIELDS],
        skip=page.skip,
        limit=page.limit,
    )
    return {"users": users}


@endpoint("users.get_by_id", "1.0")
async def get_by_id(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    user = await documents(call).find_one("users", {"id": request["user"]}, projection=FIELDS)
    if user is None:
        raise invalid_id("user", request["user"])
    return {"user": user}


@endpoint("users.create", "1.0")
async def create(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    given = {field: request.get(field) for field in ("id", "given_name", "family_name", "avatar")}
    company, name = own_company(call, request["company"]), request["name"]
    try:
        await credentials.add_user(call.backend.documents, company, name, USER, service=False, **given)
    except DuplicateDocument:
        if await documents(call).find_one("users", {"name": name}):
            raise name_taken(name) from None
        raise Refusal(Why.USER_ID_IN_USE, f"The user's id is in use: id={request['id']}") from None
    return {}


@endpoint("users.delete", "1.0")
async def delete(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    user = request["user"]
    if user == call.identity.user:
        raise validation_error("admins cannot delete themselves", field="user")
    if not await credentials.delete_user(call.backend.documents, call.identity.company, user):
        raise invalid_id("user", user)
    return {}


@endpoint("users.update", "1.0")
async def update(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    user = request["user"]
    if user != call.identity.user and not is_admin(call):
        raise forbidden("only admins may change other users")
    changed = ("name", "given_name", "family_name", "avatar")
    names = {key: request[key] for key in changed if request.get(key) is not None}
    if "name" in names:
        await _check_renaming(call, user, names["name"])
    try:
        updated = await credentials.update_user(call.backend.documents, call.identity.company, user, names)
    except DuplicateDocument:
        raise name_taken(names["name"]) from None
    if not updated:
        raise invalid_id("user", user)
    return {"updated": updated, "fields": names}


async def _check_renaming(call: Call, user: str, name: str) -> None:
    """Raises Refusal(FORBIDDEN) for users of the settings: another one with their name would get the role set there."""
    fixed = await documents(call).find_one(PASSWORDS, {"id": user, "fixed": True})
    if fixed and not await documents(call).find_one("users", {"id": user, "name": name}):
        raise forbidden("the settings define this user's name")


@endpoint("users.get_sessions", "2.34")
async def get_sessions(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    current = call.identity.session
    sessions = await _sessions(call, request, MOST_SESSIONS)
    if call.identity.role == GUEST:  # all guests are the same user, and must not see each other's logins
        sessions = [session for session in sessions if session["id"] == current]
    shown = ("id", "created", "last_used", "expires", "address", "agent", "worker")
    return {
        "sessions": [
            {**{field: session[field] for field in shown}, "current": session["id"] == current} for session in sessions
        ]
    }


@endpoint("users.end_sessions", "2.34")
async def end(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    sessions = await _sessions(call, request)
    if request["others"]:
        sessions = [session for session in sessions if session["id"] != call.identity.session]
    elif not request["all"]:
        if request.get("sessions") is None:
            raise validation_error("name the logins to end, or say all: true, or others: true", field="sessions")
        wanted = set(request["sessions"])
        sessions = [session for session in sessions if session["id"] in wanted]
    return {"ended": await end_sessions(call.backend.documents, sessions)}


async def _sessions(call: Call, request: dict[str, Any], limit: int | None = None) -> list[Document]:
    user = request.get("user") or call.identity.user
    if user != call.identity.user:
        if not is_admin(call):
            raise forbidden("only admins may see and end other users' sessions")
        if not await documents(call).count("users", {"id": user}):
            raise invalid_id("user", user)
    return await sessions_of(call.backend.documents, call.identity.company, user, limit)


@endpoint("users.get_preferences", "1.0")
async def get_preferences(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return {"preferences": json.loads((await current_user(call))["preferences"])}


@endpoint("users.set_preferences", "1.0")
async def set_preferences(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    for _ in range(ATTEMPTS):
        before = (await current_user(call))["preferences"]
        preferences = merged(json.loads(before), request["preferences"])
        unchanged = {"id": call.identity.user, "preferences": before}
        updated = await documents(call).update("users", unchanged, Update(set={"preferences": encoded(preferences)}))
        if updated:
            return {"updated": updated, "fields": {"preferences": preferences} if request["return_updated"] else {}}
    raise unavailable("the preferences are being changed by too many calls at once", retry_after=1)


def merged(preferences: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Change `preferences` in place, and return them. Dots in a change's name lead into nested objects."""
    for name, value in changes.items():
        *path, last = name.split(".")
        if len(path) >= MAX_DEPTH:
            raise validation_error(f"a name leads more than {MAX_DEPTH} objects deep", field="preferences")
        target = preferences
        for step in path:
            if not isinstance(target.get(step), dict):
                target[step] = {}
            target = target[step]
        target[last] = value
    return preferences


def encoded(preferences: dict[str, Any]) -> str:
    text = json.dumps(preferences, separators=(",", ":"))
    if len(text) > MAX_PREFERENCES:
        raise validation_error(f"must have at most {MAX_PREFERENCES} bytes in all", field="preferences")
    return text

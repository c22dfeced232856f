"""Users that the settings define: users with passwords, the guest, and the login page.

A server that starts adds, changes and deletes them.
"""

from __future__ import annotations

from typing import Any
from uuid import NAMESPACE_OID, uuid5

from apiserver.services.access.credentials import (
    Credential,
    delete_user,
    insert_if_new,
    new_user,
    stored_credential,
    update_user,
)
from apiserver.services.access.identities import PASSWORDS, forget
from apiserver.services.access.password_login import GUEST_NAME, GUEST_PASSWORD, set_password
from apiserver.services.access.roles import GUEST, LOGIN_PAGE
from apiserver.settings.settings import Settings, SettingsError
from apiserver.settings.values import FixedUser
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.query import Document

#: The access key that every copy of ClearML's web UI has, so it is no secret. It is valid only if users log in without
#: a password.
WEB_UI = Credential(
    "EYVQ385RW7Y2QQUH88CZ7DWIQ1WUHP", "XhkH6a6ds9JBnM_MrahYyYdO-wS2bqFSm8gl-V0UZXH26Ydd6Eyi28TeBEoSr6Z3Bes"
)


async def ensure_fixed_users(documents: DocumentStore, settings: Settings) -> None:
    """Add, change and delete users, guest and login page as the settings say.

    SettingsError if a name belongs to a user that the settings did not make.
    """
    company = settings.company
    users = {user.name: user for user in settings.users}
    for name, user in users.items():
        await _ensure_user(documents, company, name, user)
    for made in await documents.find("users", {"company": company, "fixed": True}):
        if made["name"] not in users:
            await delete_user(documents, company, made["id"])
    await _take_away_passwords(documents, company, set(users))
    await _ensure_role(documents, company, GUEST, GUEST_NAME, wanted=settings.guest)
    await _ensure_role(documents, company, LOGIN_PAGE, "the web UI's login page", wanted=settings.login == "simple")
    if settings.login == "simple":
        owner: Document = {"id": _id(company, "role", LOGIN_PAGE), "company": company}
        await insert_if_new(documents, "credentials", stored_credential(owner, WEB_UI, "of the web UI"))


def login_modes(settings: Settings) -> dict[str, Any]:
    """The facts that a login page must know. `enabled`: it asks for a password. `guest`: how guests log in."""
    guest: dict[str, Any] = {"enabled": settings.guest}
    if settings.guest:
        guest |= {"name": "Guest", "username": GUEST_NAME, "password": GUEST_PASSWORD}
    return {"enabled": settings.login == "password", "guest": guest}


async def _ensure_user(documents: DocumentStore, company: str, name: str, setting: FixedUser) -> None:
    """Add or change one user. The id is made from the name, so a user who is removed and added again is the same.

    If a user whom the settings did not make has the name, it is an error: that user may have chosen the name to get the
    role set here. The settings must name the user's id to take them over.
    """
    given = {field: getattr(setting, field) for field in ("role", "given_name", "family_name", "email")}
    fields = {"name": name, **given}
    fresh = {**new_user(company, name, setting.role), **fields, "id": _id(company, "user", name), "fixed": True}
    if not setting.id:
        await insert_if_new(documents, "users", fresh)
    named = await documents.find_one("users", {"company": company, "name": name})
    if named is not None and named["id"] != setting.id and not await _is_of_settings(documents, named):
        raise SettingsError(
            f"users: there is a user {name} already, whom the settings did not make. To take them over, add "
            f'id = "{named["id"]}" there; else rename or delete them first, or choose another name'
        )
    # If the user was renamed meanwhile, the id finds them.
    user = named or await documents.find_one("users", {"company": company, "id": setting.id or fresh["id"]})
    if user is None:
        raise SettingsError(f"users: {name}: there is no user with the id {setting.id}")
    if any(user.get(field) != value for field, value in fields.items()):
        await update_user(documents, company, user["id"], fields)
    if await documents.find_one(PASSWORDS, {"id": user["id"], "hash": setting.password, "fixed": True}) is None:
        await set_password(documents, user, setting.password, fixed=True)


async def _is_of_settings(documents: DocumentStore, user: Document) -> bool:
    """Whether the settings made the user, or gave them their password."""
    return bool(user.get("fixed")) or await documents.count(PASSWORDS, {"id": user["id"], "fixed": True}) > 0


async def _take_away_passwords(documents: DocumentStore, company: str, names: set[str]) -> None:
    """Delete passwords from the settings whose users the settings no longer name."""
    for password in await documents.find(PASSWORDS, {"company": company, "fixed": True}):
        user = await documents.find_one("users", {"id": password["user"]})
        if user is None or user["name"] not in names:
            await documents.delete(PASSWORDS, {"id": password["id"]})
            forget(documents)


async def _ensure_role(documents: DocumentStore, company: str, role: str, name: str, *, wanted: bool) -> None:
    """Make or delete the only user of one of the server's own roles."""
    if wanted:
        await insert_if_new(documents, "users", {**new_user(company, name, role), "id": _id(company, "role", role)})
    else:
        await delete_user(documents, company, _id(company, "role", role))


def _id(company: str, kind: str, name: str) -> str:
    return uuid5(NAMESPACE_OID, f"{company}:{kind}:{name}").hex

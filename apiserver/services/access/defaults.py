"""Makes the first documents of a server: a company, its default queue, and an admin with an access key."""

from __future__ import annotations

import contextlib
from uuid import uuid4

from apiserver.common.times import utc_now
from apiserver.services.access.credentials import Credential, insert_if_new, new_pair, new_user, stored_credential
from apiserver.services.access.identities import digest, forget
from apiserver.services.access.roles import ADMIN
from apiserver.services.queues.queue_documents import new_queue
from apiserver.settings.settings import Settings, SettingsError
from apiserver.stores.documents.base import DocumentStore, DuplicateDocument
from apiserver.stores.documents.query import Document, Unequal, Update

ADMIN_NAME = "admin"
COMPANY_NAME = "default"


async def ensure_defaults(documents: DocumentStore, settings: Settings) -> None:
    """Make the companies that the settings name, each with a default queue, if they do not exist.

    If they do, nothing is written.
    """
    await ensure_company(documents, settings.company, COMPANY_NAME)
    for company in {rule.company for rule in settings.oidc_groups} - {"", settings.company}:
        await ensure_company(documents, company, company)


async def ensure_company(documents: DocumentStore, id: str, name: str) -> None:
    """Make a company and its default queue, if they do not exist."""
    if await documents.find_one("companies", {"id": id}) is None:
        company = {"id": id, "company": id, "name": name, "created": utc_now()}
        await insert_if_new(documents, "companies", {**company, "server_uid": uuid4().hex})
    if await documents.find_one("queues", {"company": id, "system_tags": "default"}) is None:
        queue = new_queue("default", user=None, company=id, system_tags=["default"])
        await insert_if_new(documents, "queues", queue)


async def ensure_admin(documents: DocumentStore, settings: Settings) -> Credential | None:
    """Make an admin, and an access key for them if they have none. `admin_key` and `admin_secret` set that key.

    Returns the key if this call made or changed it. ValueError if only one of the two settings is given.
    """
    if bool(settings.admin_key) != bool(settings.admin_secret):
        raise ValueError("admin_key and admin_secret must be set together")
    user = await _ensure_admin_user(documents, settings.company)
    if settings.admin_key:
        return await _apply_fixed_key(documents, user, Credential(settings.admin_key, settings.admin_secret))
    if await documents.count("credentials", {"user": user["id"]}):
        return None
    credential = new_pair()
    first = {**stored_credential(user, credential, "made at first start"), "id": f"first-{user['id']}"}
    # If several servers start at once, one of them inserts the key.
    return credential if await insert_if_new(documents, "credentials", first) else None


async def first_admin(documents: DocumentStore, company: str) -> Document | None:
    """The company's oldest admin who is a person."""
    people = {"company": company, "role": ADMIN, "service": Unequal(True)}
    return await documents.find_one("users", people, sort=[("created", 1)])


async def _ensure_admin_user(documents: DocumentStore, company: str) -> Document:
    """The company's oldest admin; made if there is none."""
    admin = await first_admin(documents, company)
    if admin is not None:
        return admin
    await insert_if_new(documents, "users", new_user(company, ADMIN_NAME, ADMIN))
    user = await documents.find_one("users", {"company": company, "name": ADMIN_NAME})
    assert user is not None
    if user["role"] != ADMIN:
        raise SettingsError(
            f"there is no admin, and the user named {ADMIN_NAME} is not one: rename or delete that user first"
        )
    return user


async def _apply_fixed_key(documents: DocumentStore, admin: Document, key: Credential) -> Credential | None:
    """Give the admin the `key` from the settings, and delete the key that the settings had before.

    Returns None if nothing had to change.
    """
    kept = {"key": key.key, "secret_hash": digest(key.secret), "user": admin["id"]}
    await documents.delete("credentials", {"fixed": True, "company": admin["company"], "key": Unequal(key.key)})
    if await documents.find_one("credentials", kept) is not None:
        return None
    fresh = {**stored_credential(admin, key, "set by the settings"), "fixed": True}
    changes = {name: fresh[name] for name in ("secret_hash", "user", "company", "label", "fixed")}
    with contextlib.suppress(DuplicateDocument):  # another server, starting too, has made it
        await documents.update("credentials", {"key": key.key}, Update(set=changes), upsert=fresh)
    forget(documents)
    return key

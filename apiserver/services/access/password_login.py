"""Logging in by name and password, which is what people do; programs have access keys.

A password is good for nothing but a token, so that no other call can be made to compare slow hashes. Whatever is wrong,
the answer is the same, and takes as long: who guesses learns neither names nor who has a password.
"""

from __future__ import annotations

import secrets
from dataclasses import replace

from apiserver.passwords import check_name, matches, nobodys_hash
from apiserver.rpc.auth import bad_credentials, basic_credentials
from apiserver.rpc.call import Identity
from apiserver.services.access.identities import PASSWORD_KEY, PASSWORDS, forget, of_user
from apiserver.services.access.roles import GUEST
from apiserver.services.backend import Call
from apiserver.stores.documents.base import Document, DocumentStore, DuplicateDocument

#: The guest's name and password, which the login page tells everybody.
GUEST_NAME = GUEST_PASSWORD = "guest"
_NOBODYS = nobodys_hash()


async def by_password(call: Call) -> Identity:
    """Who logs in, by the name and password of the header; 401/22 when that is nobody, 429 after too many attempts."""
    _, _, credentials = call.headers.get("authorization", "").strip().partition(" ")
    name, password = basic_credentials(credentials) or ("", "")
    try:
        check_name(name)
    except ValueError:  # programs with an old access key are told at once
        raise bad_credentials() from None
    settings, documents, attempts = call.backend.settings, call.backend.documents, call.backend.attempts
    user = await documents.find_one("users", {"company": settings.company, "name": name})
    kept = await documents.find_one(PASSWORDS, {"id": user["id"] if user else ""})
    hashed: str = kept["hash"] if kept else _NOBODYS
    secret = f"{hashed} {password}"  # with another password, the old one is known no more
    known = attempts.knows(name, call.client, secret)
    if not known:
        attempts.begin(name, call.client)
    if user is not None and user["role"] == GUEST and password == GUEST_PASSWORD:
        key = None
    elif (known or await attempts.check(lambda: matches(password, hashed))) and kept:
        key = kept["key"]
    else:
        raise bad_credentials()
    identity = await of_user(documents, user["id"]) if user else None
    if identity is None:
        raise bad_credentials()
    attempts.succeeded(name, call.client, secret)
    return replace(identity, key=key)


async def caller_of(call: Call) -> Identity:
    """Who calls with a name and a password; whatever else they are known by has been tried, and is refused again."""
    auth = call.backend.auth
    if not call.headers.get("authorization", "").strip().lower().startswith("basic"):
        return await auth.authenticate(call.headers, method=call.method, client=call.client)
    return await auth.acting(await by_password(call), call.headers)


async def set_password(documents: DocumentStore, user: Document, hashed: str, *, fixed: bool = False) -> None:
    """Give a user (a document) the password with this hash, in place of any other; tokens got by that one end."""
    own = {"id": user["id"]}
    key = f"{PASSWORD_KEY}{user['id']}-{secrets.token_hex(16)}"
    kept = {"user": user["id"], "company": user["company"], "key": key, "hash": hashed, "fixed": fixed}
    try:
        await documents.update(PASSWORDS, own, {"$set": kept}, upsert=own)
    except DuplicateDocument:  # another server that starts has just made it
        await documents.update(PASSWORDS, own, {"$set": kept})
    forget(documents)

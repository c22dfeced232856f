"""Logging in with name and password, for people. Programs use access keys.

Only `auth.login` takes a password, so that no other call can make the server compare slow hashes. Whatever is wrong,
the answer is the same and takes the same time, so a guesser learns neither who exists nor who has a password.
"""

from __future__ import annotations

import secrets
from dataclasses import replace

from apiserver.common.passwords import check_name, matches, nobodys_hash
from apiserver.rpc.auth import bad_credentials, basic_credentials
from apiserver.rpc.call import Identity
from apiserver.services.access.identities import PASSWORD_KEY, PASSWORDS, forget, of_user
from apiserver.services.access.roles import GUEST
from apiserver.services.backend import Call
from apiserver.stores.documents.base import DocumentStore, DuplicateDocument
from apiserver.stores.documents.query import Document, Update

#: The guest's name and password. The login page shows them to everybody.
GUEST_NAME = GUEST_PASSWORD = "guest"


async def by_password(call: Call) -> Identity:
    """The user with the header's name and password.

    Raises Refusal(WRONG_CREDENTIALS) if there is none, Refusal(OVERLOADED) after too many failed attempts.
    """
    _, _, credentials = call.headers.get("authorization", "").strip().partition(" ")
    name, password = basic_credentials(credentials) or ("", "")
    try:
        check_name(name)
    except ValueError:  # not a name but an access key: a program with a revoked key is answered at once
        raise bad_credentials() from None
    settings, documents, attempts = call.backend.settings, call.backend.documents, call.backend.attempts
    user = await documents.find_one("users", {"company": settings.company, "name": name})
    if user is not None and user.get("service"):
        user = None
    kept = await documents.find_one(PASSWORDS, {"id": user["id"] if user else ""})
    call.tried = name if user is not None else ""
    hashed: str = kept["hash"] if kept else nobodys_hash(call.backend.bounds.password_cost)
    secret = f"{hashed} {password}"  # with the hash, so that an old password is not known after a change
    is_remembered = attempts.knows(name, call.client, secret)
    if not is_remembered:
        attempts.begin(name, call.client)
    if user is not None and user["role"] == GUEST and password == GUEST_PASSWORD:
        key = None
    elif (is_remembered or await attempts.check(lambda: matches(password, hashed))) and kept:
        key = kept["key"]
    else:
        raise bad_credentials()
    identity = await of_user(documents, user["id"]) if user else None
    if identity is None:
        raise bad_credentials()
    attempts.succeeded(name, call.client, secret)
    return replace(identity, key=key)


async def caller_of(call: Call) -> Identity:
    """The caller of `auth.login` by name and password. Callers without these get their authentication error again."""
    auth = call.backend.auth
    if not call.headers.get("authorization", "").strip().lower().startswith("basic"):
        return await auth.authenticate(call.headers, method=call.method, client=call.client)
    return await auth.acting(await by_password(call), call.headers)


async def set_password(documents: DocumentStore, user: Document, hashed: str, *, fixed: bool = False) -> None:
    """Set a user's password, as a hash. Tokens from the password before end."""
    own = {"id": user["id"]}
    key = f"{PASSWORD_KEY}{user['id']}-{secrets.token_hex(16)}"
    kept = {"user": user["id"], "company": user["company"], "key": key, "hash": hashed, "fixed": fixed}
    try:
        await documents.update(PASSWORDS, own, Update(set=kept), upsert=own)
    except DuplicateDocument:  # another server, starting too, has just inserted it
        await documents.update(PASSWORDS, own, Update(set=kept))
    forget(documents)

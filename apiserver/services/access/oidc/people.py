"""Finds the user whom the provider signed in, or adds them, if they may come in at all.

A person is who the provider says by its own name and the person's id there (issuer and sub), which never change hands.
An e-mail address or a name does: somebody may choose the address of an admin at the provider, or get the address of
somebody who left. So these never lead to a user who is here already. An admin links such a user by a command.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from apiserver.common.errors import Refusal, Why
from apiserver.rpc.call import Identity
from apiserver.services.access.credentials import insert_if_new, new_user, update_user
from apiserver.services.access.identities import PROVIDER_KEY, PROVIDER_LINKS, PROXY_KEY, digest, forget, of_user
from apiserver.services.access.oidc.id_tokens import Claims
from apiserver.services.access.oidc.provider import claim
from apiserver.settings.settings import Settings
from apiserver.settings.values import GroupRole
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.query import Document, Update

_LONGEST_NAME = 200
EVERYBODY = GroupRole("*")
#: Stands for the issuer of people whom a trusted proxy names.
PROXY = "proxy"


async def user_of(documents: DocumentStore, settings: Settings, claims: Claims) -> Identity:
    """The user of a person whom the provider signed in. Raises Refusal(FORBIDDEN) if they may not come in."""
    return await _user_at(documents, settings, _place_of(settings, claims), settings.oidc_issuer, claims)


async def user_of_proxy(documents: DocumentStore, settings: Settings, name: str) -> Identity:
    """The user of a person whom a trusted proxy names. Raises Refusal(FORBIDDEN) if they may not come in."""
    return await _user_at(documents, settings, EVERYBODY, PROXY, {"sub": name, "preferred_username": name})


async def _user_at(
    documents: DocumentStore, settings: Settings, place: GroupRole, issuer: str, claims: Claims
) -> Identity:
    company, subject = place.company or settings.company, str(claims["sub"])
    link = _link_id(company, issuer, subject)
    known_link = await documents.find_one(PROVIDER_LINKS, {"id": link})
    user = known_link and await documents.find_one("users", {"id": known_link["user"], "company": company})
    if not user:
        if not settings.sign_up:
            raise _refused(f"you are no user here yet. An admin can add you, by your id there: {subject}")
        # The link comes first. So if somebody signs in on two servers at once, both add the same user.
        fresh = new_user(company, "", place.role)
        await insert_if_new(documents, PROVIDER_LINKS, _link(fresh, issuer, subject))
        linked = await documents.find_one(PROVIDER_LINKS, {"id": link})
        if linked is None:
            raise _refused("your user has just been deleted")
        user = await _add(documents, {**fresh, "id": linked["user"]}, claims)
    elif user.get("service"):
        raise _refused("your user here is an account for programs")
    elif place is not EVERYBODY and user["role"] != place.role and not user.get("fixed"):
        await update_user(documents, company, user["id"], {"role": place.role})
    identity = await of_user(documents, user["id"])
    if identity is None or identity.company != company:
        raise _refused("your user has just been deleted")
    kind = PROXY_KEY if issuer == PROXY else PROVIDER_KEY
    return replace(identity, key=f"{kind}{identity.user}-{link}")


async def link_user(documents: DocumentStore, user: Document, issuer: str, subject: str) -> None:
    """Let a person sign in as this user, and as no other user of the company."""
    link = _link(user, issuer, subject)
    if not await documents.update(PROVIDER_LINKS, {"id": link["id"]}, Update(set={"user": user["id"]})):
        await insert_if_new(documents, PROVIDER_LINKS, link)
    forget(documents)


async def unlink_user(documents: DocumentStore, company: str, user: str) -> int:
    """Let nobody sign in at the provider as this user, and end their sessions from there; how many links there were."""
    unlinked = await documents.delete(PROVIDER_LINKS, {"company": company, "user": user})
    forget(documents)
    return unlinked


def _place_of(settings: Settings, claims: Claims) -> GroupRole:
    """The role and company that a person's groups give: those of the first group in the settings.

    Raises Refusal(FORBIDDEN) if they may not come in.
    """
    if settings.oidc_email_domains:
        _check_email(settings.oidc_email_domains, claims)
    if not settings.oidc_groups:
        return EVERYBODY
    groups = claim(claims, settings.oidc_groups_claim)
    own = [group for group in (groups if isinstance(groups, list) else [groups]) if isinstance(group, str)]
    place = next((rule for rule in settings.oidc_groups if rule.group in own or rule.group == EVERYBODY.group), None)
    if place is None:
        raise _refused("you are in none of the groups that may use this server")
    return place


def _check_email(domains: Sequence[str], claims: Claims) -> None:
    email, is_verified = claims.get("email"), claims.get("email_verified")
    if not isinstance(email, str) or is_verified not in (True, "true"):
        raise _refused("the provider does not say that your e-mail address was verified")
    if not email.lower().endswith(tuple(f"@{domain}" for domain in domains)):
        raise _refused("your e-mail address is in none of the domains that may use this server")


async def _add(documents: DocumentStore, user: Document, claims: Claims) -> Document:
    """Add a user, named as the provider says; if others have these names, with a part of their id behind it."""
    given = {name: _text(claims, name) for name in ("given_name", "family_name", "email")}
    names = [name for key in ("preferred_username", "email", "name") if (name := _text(claims, key))]
    for name in (*names, f"{(names or ['user'])[0][: _LONGEST_NAME - 9]} {user['id'][:8]}"):
        await insert_if_new(documents, "users", {**user, **given, "name": name})
        # By another server, too, at the same moment.
        if (found := await documents.find_one("users", {"id": user["id"], "company": user["company"]})) is not None:
            return found
    if await documents.count("users", {"id": user["id"]}):
        raise _refused("a user of another company has the id of yours. An admin can link you with another user")
    raise _refused("there are users of your names here already")


def _text(claims: Claims, name: str) -> str:
    """A claim that is text, without what cannot be printed."""
    text = claims.get(name)
    return "".join(filter(str.isprintable, text)).strip()[:_LONGEST_NAME] if isinstance(text, str) else ""


def _link(user: Document, issuer: str, subject: str) -> Document:
    """The document that says that a person signs in as this user."""
    id = _link_id(user["company"], issuer, subject)
    return {"id": id, "user": user["id"], "company": user["company"], "issuer": issuer, "subject": subject}


def _link_id(company: str, issuer: str, subject: str) -> str:
    return digest(f"{company}\n{issuer}\n{subject}")


def _refused(reason: str) -> Refusal:
    return Refusal(Why.FORBIDDEN, f"You have signed in, but {reason}.")

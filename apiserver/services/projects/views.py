"""Views: addresses of the viewer that are kept under a short id, or under a name in a project.

An address says all that a page shows, so it grows long: two hundred selected runs take 7 KB. A *short address* is kept
under the first characters of its digest, so the same address always gets the same id, and everybody in the company can
open it. A *named view* belongs to a project, and to the user who made it; others in the company see it if it is shared.
Saving a view under its name again replaces it.

A user has up to 1,000 short addresses, of 4 MB together, and 200 named views. The oldest short addresses make room for
a new one. When a
user is deleted, private views go with them; what others may use stays.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from contextlib import suppress
from hashlib import blake2b
from typing import Any
from urllib.parse import unquote, urlsplit

from apiserver.common import answers
from apiserver.common.errors import Refusal, Why, validation_error
from apiserver.common.times import utc_now
from apiserver.rpc.call import Identity
from apiserver.services.access.roles import ADMIN
from apiserver.services.bounds import CallBounds
from apiserver.stores.documents.base import DuplicateDocument
from apiserver.stores.documents.query import Document, Filter, In, Unequal, Update
from apiserver.stores.documents.scoped import CompanyDocuments

VIEWS = "views"
LONGEST, LONGEST_NAMED = 60_000, 8192
"""Characters of an address, and of that of a named view: all of a project's are listed together."""
SHOWN = ("id", "address", "name", "project", "shared", "user", "created")
#: 72 bits: a million addresses have a common id with a chance of one in ten billion.
_DIGEST_BYTES = 9


def check_address(address: str) -> None:
    """Raises Refusal(INVALID) unless the address is that of a page: `/projects/…`, not `//host` or `https://…`.

    Nor may it lead on: a short address could lead to itself without end.
    """
    if not address.startswith("/") or address.startswith(("//", "/\\")) or any(ord(one) < 32 for one in address):
        raise validation_error("it must be a path of this server, such as /projects/<id>?sort=name", field="address")
    # Browsers take out "." and ".." steps, also those that are written "%2e".
    steps = [step for step in unquote(urlsplit(address).path).replace("\\", "/").split("/") if step not in ("", ".")]
    if ".." in steps or steps[:1] in (["s"], ["sign-in"]):
        raise validation_error("it must be a page's own address, not one that leads to it", field="address")


async def keep(documents: CompanyDocuments, caller: Identity, address: str, bounds: CallBounds) -> Document:
    """The short address for an address, which is made if there is none."""
    check_address(address)
    id = _id(caller.company, address)
    if (known := await documents.find_one(VIEWS, {"id": id})) is not None:
        return known
    mine = {"user": caller.user, "name": None}
    size = len(address.encode())
    kept = await documents.find(VIEWS, mine, projection=["id", "size"], sort=[("created", 1)])
    oldest: list[str] = []
    total = size + sum(one.get("size", 0) for one in kept)
    for one in kept:
        if len(kept) - len(oldest) < bounds.short_views and total <= bounds.short_bytes:
            break
        oldest.append(one["id"])
        total -= one.get("size", 0)
    if oldest:
        await documents.delete(VIEWS, {**mine, "id": In(oldest)})
    view = {"id": id, "address": address, "size": size, "name": None, "project": None, "shared": True}
    view |= _stamps(caller)
    with suppress(DuplicateDocument):  # somebody else has just kept the same
        await documents.insert(VIEWS, view)
    return view


async def save(
    documents: CompanyDocuments,
    caller: Identity,
    address: str,
    bounds: CallBounds,
    *,
    name: str,
    project: str,
    shared: bool,
) -> Document:
    """Save a view under a name; one of the same name that the caller made in the project is replaced."""
    check_address(address)
    if len(address) > LONGEST_NAMED:
        raise validation_error(f"that of a named view has at most {LONGEST_NAMED} characters", field="address")
    id = _id(caller.company, caller.user, project, name)
    view: dict[str, Any] = {"address": address, "name": name, "project": project, "shared": shared, **_stamps(caller)}
    if not await documents.update(VIEWS, {"id": id}, Update(set=view)):
        if await documents.count(VIEWS, {"user": caller.user, "name": Unequal(None)}) >= bounds.named_views:
            raise validation_error(f"you have {bounds.named_views} views: delete some first", field="name")
        await documents.update(VIEWS, {"id": id}, Update(set=view), upsert={"id": id})
    return {"id": id, **view}


async def find(documents: CompanyDocuments, caller: Identity, id: str) -> Document:
    """The view. Raises Refusal(NO_VIEW) if there is none, or it is another user's own."""
    found = await documents.find_one(VIEWS, {"id": id})
    if found is None or not (found["shared"] or found["user"] == caller.user):
        raise no_view(id)
    return found


async def of_project(documents: CompanyDocuments, caller: Identity, project: str, most: int) -> list[Document]:
    """Up to `most` named views of a project: the caller's own by name, then those of others that they may see."""
    own: Filter = {"project": project, "user": caller.user}
    others: Filter = {"project": project, "user": Unequal(caller.user), "shared": True}
    found: list[Document] = []
    for wanted in (own, others):
        left, counted = most - len(found), answers.counter()
        found += await documents.find(VIEWS, wanted, sort=[("name", 1)], limit=left, counted=counted)
    return found


async def delete(documents: CompanyDocuments, caller: Identity, id: str) -> None:
    """Delete a view. Raises Refusal(FORBIDDEN) if it is another user's, unless the caller is an admin."""
    found = await find(documents, caller, id)
    if found["user"] != caller.user and caller.role != ADMIN:
        raise Refusal(Why.FORBIDDEN, "Only its maker and admins may delete a view")
    await documents.delete(VIEWS, {"id": id})


def no_view(id: str) -> Refusal:
    """The error for a view that does not exist, or is another user's own."""
    return Refusal(Why.NO_VIEW, f"There is no view '{id[:100]}'. Its maker may have deleted it")


def _stamps(caller: Identity) -> Document:
    return {"user": caller.user, "company": caller.company, "created": utc_now()}


def _id(*parts: str) -> str:
    """The same short text for the same parts, of letters, digits, "-" and "_"."""
    made = blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        made.update(len(encoded).to_bytes(8, "big") + encoded)
    return urlsafe_b64encode(made.digest()).decode()

"""Links that sign the admin in, once, within ten minutes: for the owner of the machine, who reads them in a terminal.

A link has a secret of 256 random bits in its fragment, the part behind `#`. Browsers send no fragment to servers, so
the secret is in no log. The page that the link leads to posts it. Of the secret, only the SHA-256 is stored, as the id
of a document. It is looked up by this digest, so the time that it takes tells nothing about the secret. Whoever deletes
the document has the right to sign in. So a link works once, however many ask at once, on any server of the store.
"""

from __future__ import annotations

import secrets

from apiserver.common.times import from_now, utc_now
from apiserver.rpc.auth import bad_credentials
from apiserver.rpc.call import Identity
from apiserver.services.access.defaults import first_admin
from apiserver.services.access.identities import digest, of_user
from apiserver.services.access.roles import ADMIN
from apiserver.services.backend import Call
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.query import AtLeast, Less

#: Collection of links that nobody has used yet, by the digests of their secrets.
LINKS = "sign_in_links"
SECONDS = 600
#: The name under which wrong secrets are counted. No user has it, as names have no line breaks.
_COUNTED = "\n sign-in link"


async def new_path(documents: DocumentStore, company: str) -> str:
    """The path of a new link: `/sign-in#link=…`. It signs in the company's oldest admin. LookupError without one."""
    admin = await first_admin(documents, company)
    if admin is None:
        raise LookupError("there is no admin")
    secret = secrets.token_urlsafe(32)
    link = {"id": digest(secret), "user": admin["id"], "company": company, "expires": from_now(SECONDS)}
    await documents.delete(LINKS, {"expires": Less(utc_now())})
    await documents.insert(LINKS, [link])
    return f"/sign-in#link={secret}"


async def by_link(call: Call, secret: str) -> Identity:
    """The admin whose link has this secret; the link is used up.

    Raises Refusal(WRONG_CREDENTIALS) if there is no such link, it is too old, or it was used; Refusal(OVERLOADED) after
    too many wrong ones from an address, but not for a good one, because nobody can guess it; and Refusal(FORBIDDEN)
    unless a page of this server asks: the link stays good then.
    """
    documents, attempts = call.backend.documents, call.backend.attempts
    call.backend.auth.origins.check(call.method, call.headers, changes=True)
    good = {"id": digest(secret), "expires": AtLeast(utc_now())}
    link = await documents.find_one(LINKS, good)
    if link is None or not await documents.delete(LINKS, good):
        attempts.begin(_COUNTED, call.client)
        raise bad_credentials()
    admin = await of_user(documents, link["user"])
    if admin is None or admin.role != ADMIN:
        raise bad_credentials()
    return admin

"""Names of the tasks, models, projects and users whose accounts are shown to people."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.services.quotas.accounts import Account, shown
from apiserver.services.quotas.subjects import COLLECTIONS
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.scoped import CompanyDocuments

#: The kinds of subjects that have a name beside their id.
_NAMED = ("task", "project", "user")


async def look_up(documents: DocumentStore, accounts: Sequence[Account]) -> None:
    """Note the names of accounts of one company that were not looked up yet."""
    for of in _NAMED:
        for collection in COLLECTIONS[of]:
            unnamed = {one.subject.id: one for one in accounts if one.subject.of == of and one.name is None}
            if unnamed:
                own = CompanyDocuments(documents, accounts[0].subject.company)
                for found in await own.find_kept(collection, [*unnamed], ("name",)):
                    unnamed[found["id"]].name = shown(str(found.get("name") or ""))
    for account in accounts:
        account.name = account.name or ""

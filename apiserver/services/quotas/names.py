"""Names of the tasks, projects and users whose accounts are shown to people."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.services.quotas.accounts import Account, shown
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.scoped import CompanyDocuments

#: What has a name beside its id, and where.
_COLLECTIONS = {"task": "tasks", "project": "projects", "user": "users"}


async def look_up(documents: DocumentStore, accounts: Sequence[Account]) -> None:
    """Note the names of accounts of one company that have none yet."""
    for of, collection in _COLLECTIONS.items():
        ids = {account.subject.id for account in accounts if account.subject.of == of and account.name is None}
        if ids:
            own = CompanyDocuments(documents, accounts[0].subject.company)
            named = {one["id"]: str(one.get("name") or "") for one in await own.find_kept(collection, ids, ("name",))}
            for account in accounts:
                if account.subject.of == of:
                    account.name = shown(named.get(account.subject.id, ""))
    for account in accounts:
        account.name = account.name or ""

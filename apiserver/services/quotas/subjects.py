"""Whose use a quota bounds, and which quota is for whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from apiserver.events.model import Owner
from apiserver.settings.values import Quota
from apiserver.stores.documents.base import DocumentStore


class Subject(NamedTuple):
    """A task (or model), project, user or company whose use is counted."""

    of: str
    """The kind of the subject, as in a quota: "task"."""
    company: str
    id: str

    def __str__(self) -> str:
        return f"{self.of} {self.id}"


class Subjects:
    """Finds the subjects that have a quota. A quota with an id is in place of the one without."""

    def __init__(self, quotas: Sequence[Quota]) -> None:
        self._quotas = {(quota.of, quota.id): quota for quota in quotas}
        self._kinds = {quota.of for quota in quotas}

    def of(self, owner: Owner, project: str | None, user: str | None) -> list[tuple[Subject, Quota]]:
        """The subjects that an owner's events (or files) count for, if they have a quota; each with its quota."""
        company, task = owner.company, owner.id if owner.has_document else ""
        quotas = []
        for of, id in (("task", task), ("project", project), ("user", user), ("company", company)):
            if id and of in self._kinds:
                quota = self._quotas.get((of, id)) or self._quotas.get((of, ""))
                if quota is not None:
                    quotas.append((Subject(of, company, id), quota))
        return quotas


#: Where documents of subjects are.
COLLECTIONS = {"task": ("tasks", "models"), "project": ("projects",), "user": ("users",), "company": ("companies",)}


async def unknown(quotas: Sequence[Quota], documents: DocumentStore) -> list[str]:
    """A sentence for each quota whose id nobody has. It tells the ids of subjects that have it as their name."""
    sentences = []
    for quota in quotas:
        collections = COLLECTIONS[quota.of] if quota.id else ()
        if collections and not any([await documents.count(collection, {"id": quota.id}) for collection in collections]):
            named = [await documents.find(name, {"name": quota.id}, projection=["id"], limit=5) for name in collections]
            ids = [document["id"] for page in named for document in page]
            but = f"; of this name there is {' and '.join(ids)}: a quota is for an id" if ids else ""
            sentences.append(f"quotas: there is no {quota.of} with the id {quota.id!r}{but}")
    return sentences

"""Whose use a quota bounds, and which quota is for whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from apiserver.events.model import Owner
from apiserver.setting_values import Quota
from apiserver.stores.documents.query import Document

#: Owners whose subjects are remembered.
_MOST = 10_000


class Subject(NamedTuple):
    """A task (or model), project, user or company whose use is counted."""

    of: str
    """What it is, as in a quota: "task"."""
    company: str
    id: str

    def __str__(self) -> str:
        return f"{self.of} {self.id}"


#: Subjects, each with the quota that is for it.
Held = list[tuple[Subject, Quota]]


class Subjects:
    """Finds the subjects that have a quota. A quota with an id is in place of the one without."""

    def __init__(self, quotas: Sequence[Quota]) -> None:
        self._quotas = {(quota.of, quota.id): quota for quota in quotas}
        self._kinds = {quota.of for quota in quotas}
        self._known: dict[tuple[Owner, str | None, str | None], Held] = {}

    def quota_of(self, subject: Subject) -> Quota | None:
        """The quota that is for a subject."""
        return self._quotas.get((subject.of, subject.id)) or self._quotas.get((subject.of, ""))

    def of(self, owner: Owner, project: str | None, user: str | None) -> Held:
        """The subjects that an owner's events (or files) count for, if they have a quota; each with its quota."""
        company, task = owner.company, owner.id if owner.has_document else ""
        ids = (("task", task), ("project", project), ("user", user), ("company", company))
        all_of_them = [Subject(of, company, id) for of, id in ids if id and of in self._kinds]
        return [(subject, quota) for subject in all_of_them if (quota := self.quota_of(subject)) is not None]

    def of_document(self, owner: Owner, document: Document) -> Held:
        """The same, of the owner with this document. It is remembered, because each batch asks."""
        key = owner, document.get("project"), document.get("user")
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            known = self._known[key] = self.of(*key)
        return known

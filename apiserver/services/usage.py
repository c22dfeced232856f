"""How much is kept of a company's tasks and models, by project.

Adding that up takes some seconds where 100,000 tasks are kept. So it is done for one company at a time, whoever asks
meanwhile waits for the same, and it is remembered for a minute.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from apiserver.events.model import Owner
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.paging import pages_by_id
from apiserver.stores.documents.scoped import CompanyDocuments
from apiserver.stores.events.base import EventStore
from apiserver.stores.events.usage import Usage

#: Seconds for which the usage of a company is remembered, and the most companies of which it is.
REMEMBERED, _MOST = 60.0, 4
_AT_ONCE = 2000


class NamedProject(NamedTuple):
    """A project; both are "" for owners that have none."""

    id: str
    name: str


@dataclass(slots=True)
class CompanyUsage:
    """What is kept of a company. Row n of `usage` is of the owner with names[n] in projects[project_of[n]].

    users[user_of[n]] made that task or model; the first one, "", is nobody.
    """

    usage: Usage
    names: list[str]
    project_of: npt.NDArray[np.int64]
    projects: list[NamedProject]
    user_of: npt.NDArray[np.int64]
    users: list[str]

    def of_project(self, project: str) -> CompanyUsage:
        """What is kept of a project, without those within it; "": of owners that have none."""
        of_it = [n for n, one in enumerate(self.projects) if one.id == project]
        rows = np.flatnonzero(np.isin(self.project_of, of_it))
        kept = self.usage
        usage = Usage([kept.owners[n] for n in rows.tolist()], kept.series[rows], kept.events[rows], kept.bytes[rows])
        names = [self.names[n] for n in rows.tolist()]
        return CompanyUsage(usage, names, self.project_of[rows], self.projects, self.user_of[rows], self.users)

    def by_project(self) -> Usage:
        """The sums of each project, in the order of `projects`; its owners are the projects' ids."""
        return self.usage.summed([Owner("", project.id) for project in self.projects], self.project_of)

    def in_all(self) -> Usage:
        """The sums of all."""
        return self.usage.summed([Owner("", "")], np.zeros_like(self.project_of))


class Usages:
    """The usage of companies, remembered for a while."""

    def __init__(self, events: EventStore, documents: DocumentStore) -> None:
        self._events = events
        self._documents = documents
        self._known: OrderedDict[str, tuple[float, CompanyUsage]] = OrderedDict()
        self._asking: dict[str, asyncio.Task[CompanyUsage]] = {}
        self._one_at_a_time = asyncio.Lock()

    async def of(self, company: str) -> CompanyUsage:
        """The usage of a company, up to a minute old; EventStoreBusy if it takes too long."""
        known = self._known.get(company)
        if known is not None and time.monotonic() - known[0] < REMEMBERED:
            return known[1]
        return await self.anew(company)

    async def anew(self, company: str) -> CompanyUsage:
        """The usage of a company as of now, or of a moment ago if somebody asks already; EventStoreBusy as `of`."""
        asking = self._asking.get(company)
        if asking is None:
            asking = self._asking[company] = asyncio.create_task(self._ask(company), name="usage")
            asking.add_done_callback(lambda _: self._asking.pop(company, None))
        return await asyncio.shield(asking)

    async def _ask(self, company: str) -> CompanyUsage:
        async with self._one_at_a_time:
            usage = await self._events.usage(company)
            found = await self._joined(usage, CompanyDocuments(self._documents, company))
        self._known[company] = (time.monotonic(), found)
        self._known.move_to_end(company)
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
        return found

    async def _joined(self, usage: Usage, documents: CompanyDocuments) -> CompanyUsage:
        """The usage with the names of its owners and projects. Only those that have events are remembered."""
        places = {owner: n for n, owner in enumerate(usage.owners)}
        names, project_of, user_of = [""] * len(places), *(np.zeros(len(places), np.int64) for _ in range(2))
        projects = [NamedProject("", "")]
        numbers, users = {"": 0}, {"": 0}
        async for page in pages_by_id(documents, "projects", projection=["name"], limit=_AT_ONCE):
            for one in page:
                numbers[one["id"]] = len(projects)
                projects.append(NamedProject(one["id"], str(one.get("name") or "")))
        for collection, is_model in (("tasks", False), ("models", True)):
            async for page in pages_by_id(
                documents, collection, projection=["name", "project", "user"], limit=_AT_ONCE
            ):
                for one in page:
                    place = places.get(Owner(documents.company, one["id"], is_model))
                    if place is not None:
                        names[place] = str(one.get("name") or "")
                        project_of[place] = numbers.get(str(one.get("project") or ""), 0)
                        user_of[place] = users.setdefault(str(one.get("user") or ""), len(users))
        return CompanyUsage(usage, names, project_of, projects, user_of, list(users))

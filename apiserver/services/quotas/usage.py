"""How much is kept of a company's tasks and models, by project: events, and files in the folders of tasks.

Adding that up takes some seconds where 100,000 tasks are kept. So it is done for one company at a time, whoever asks
meanwhile waits for the same, and it is remembered for a minute.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from apiserver.events.model import Int64Array, Owner
from apiserver.services.quotas.sizes_of_files import Files, files_by_task
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.paging import pages_by_id
from apiserver.stores.documents.scoped import CompanyDocuments
from apiserver.stores.events.base import EventStore
from apiserver.stores.events.usage import Usage

#: The usage of a company is remembered for so many seconds, or so many times as long as it took to find out, whichever
#: is longer; and the most companies of which it is.
REMEMBERED, _TIMES, _MOST = 60.0, 10.0, 4
_AT_ONCE = 2000


class Named(NamedTuple):
    """A project or user; both are "" for owners that have none."""

    id: str
    name: str


class Kept(NamedTuple):
    """Events of owners, and their files: a row for each, with how many there are and their bytes."""

    usage: Usage
    files: Int64Array


@dataclass(slots=True)
class CompanyUsage:
    """The usage of a company. Row n of `kept` is of the owner with names[n] in projects[project_of[n]].

    users[user_of[n]] made that task or model; the first one, "", is nobody. The last row is of no task (its id is ""):
    files in no task's folder.
    """

    kept: Kept
    names: list[str]
    project_of: npt.NDArray[np.int64]
    projects: list[Named]
    user_of: npt.NDArray[np.int64]
    users: list[Named]

    def of_project(self, project: str) -> CompanyUsage:
        """The usage of a project, without its subprojects; "": of owners without a project."""
        of_it = [n for n, one in enumerate(self.projects) if one.id == project]
        rows = np.flatnonzero(np.isin(self.project_of, of_it))
        all, files = self.kept
        usage = Usage([all.owners[n] for n in rows.tolist()], all.series[rows], all.events[rows], all.bytes[rows])
        names = [self.names[n] for n in rows.tolist()]
        kept = Kept(usage, files[rows])
        return CompanyUsage(kept, names, self.project_of[rows], self.projects, self.user_of[rows], self.users)

    def by_project(self) -> Kept:
        """The sums of each project, in the order of `projects`; its owners are the projects' ids."""
        return self._summed([Owner("", project.id) for project in self.projects], self.project_of)

    def in_all(self) -> Kept:
        """The sums of all."""
        return self._summed([Owner("", "")], np.zeros_like(self.project_of))

    def _summed(self, groups: list[Owner], group_of: npt.NDArray[np.int64]) -> Kept:
        files = np.zeros((len(groups), 2), np.int64)
        np.add.at(files, group_of, self.kept.files)
        return Kept(self.kept.usage.summed(groups, group_of), files)


class _Known(NamedTuple):
    usage: CompanyUsage
    at: float
    took: float
    """How many seconds it took to find out."""


class Usages:
    """The usage of companies, remembered for a while."""

    def __init__(
        self,
        events: EventStore,
        documents: DocumentStore,
        files: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`files`: the folder of files."""
        self._events = events
        self._documents = documents
        self._files = files
        self._clock = clock
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._asking: dict[str, asyncio.Task[CompanyUsage]] = {}
        self._one_at_a_time = asyncio.Lock()

    async def of(self, company: str) -> CompanyUsage:
        """The usage of a company, up to a minute old; EventStoreBusy if it takes too long."""
        if (known := self._remembered(company)) is not None:
            return known
        asking = self._asking.get(company)
        if asking is None:
            asking = self._asking[company] = asyncio.create_task(self._of(company), name="usage")
            asking.add_done_callback(lambda _: self._asking.pop(company, None))
        return await asyncio.shield(asking)

    async def anew(self, company: str, at: Callable[[int], None]) -> CompanyUsage:
        """The usage of a company as it is now; EventStoreBusy as `of`.

        `at` is called with the moment (epoch ns) as of which it is: events were read by then, and files are looked at
        that were put in their places before.
        """
        async with self._one_at_a_time:
            return await self._ask(company, at)

    def _remembered(self, company: str) -> CompanyUsage | None:
        known = self._known.get(company)
        if known is None or self._clock() - known.at >= max(REMEMBERED, _TIMES * known.took):
            return None
        return known.usage

    async def _of(self, company: str) -> CompanyUsage:
        async with self._one_at_a_time:
            return self._remembered(company) or await self._ask(company, lambda _: None)

    async def _ask(self, company: str, at: Callable[[int], None]) -> CompanyUsage:
        began = self._clock()
        usage = await self._events.usage(company)
        at(moment := time.time_ns())
        files = await asyncio.to_thread(files_by_task, self._files, company, moment)
        joined = await self._joined(usage, files, CompanyDocuments(self._documents, company))
        now = self._clock()
        self._known[company] = _Known(joined, now, now - began)
        self._known.move_to_end(company)
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
        return joined

    async def _joined(self, usage: Usage, files: Mapping[str, Files], documents: CompanyDocuments) -> CompanyUsage:
        """The usage and files with the names of their owners and projects. Only owners that have some are in it."""
        with_files = [Owner(documents.company, id) for id in files if id]
        about = await _about(documents, {*usage.owners, *with_files})
        with_events = set(usage.owners)
        others = [owner for owner in with_files if owner in about and owner not in with_events]
        owners = [*usage.owners, *others, Owner(documents.company, "")]
        rows = [about.get(owner, _NOTHING) for owner in owners]
        projects = [Named("", "")]
        async for page in pages_by_id(documents, "projects", projection=["name"], limit=_AT_ONCE):
            projects += [Named(one["id"], str(one.get("name") or "")) for one in page]
        users = list(dict.fromkeys(["", *(row.user for row in rows)]))
        numbers = {one.id: number for number, one in enumerate(projects)}
        user_numbers = {id: number for number, id in enumerate(users)}
        return CompanyUsage(
            _kept(usage, files, owners),
            [row.name for row in rows],
            np.array([numbers.get(row.project, 0) for row in rows], np.int64),
            projects,
            np.array([user_numbers[row.user] for row in rows], np.int64),
            await _named_users(documents, users),
        )


class _About(NamedTuple):
    """Fields of an owner's document: its name, and the ids of its project and user."""

    name: str
    project: str
    user: str


_NOTHING = _About("", "", "")


async def _about(documents: CompanyDocuments, owners: Collection[Owner]) -> dict[Owner, _About]:
    """The name, the project and the user of each owner that has a document."""
    fields: dict[Owner, _About] = {}
    for collection, is_model in (("tasks", False), ("models", True)):
        async for page in pages_by_id(documents, collection, projection=_About._fields, limit=_AT_ONCE):
            for document in page:
                if (owner := Owner(documents.company, document["id"], is_model)) in owners:
                    fields[owner] = _About(*(str(document.get(name) or "") for name in _About._fields))
    return fields


def _kept(usage: Usage, files: Mapping[str, Files], owners: list[Owner]) -> Kept:
    """The events and files of the owners. The first ones are those of `usage`, the last one has all other files."""
    more = [(0, len(owners) - len(usage.owners)), (0, 0)]
    series, events, bytes = (np.pad(table, more) for table in (usage.series, usage.events, usage.bytes))
    of_owners = np.zeros((len(owners), 2), np.int64)
    for n, owner in enumerate(owners[:-1]):
        if not owner.is_model and (some := files.get(owner.id)) is not None:
            of_owners[n] = some.count, some.bytes
    in_all = [sum(one.count for one in files.values()), sum(one.bytes for one in files.values())]
    of_owners[-1] = np.array(in_all, np.int64) - of_owners.sum(axis=0)
    return Kept(Usage(owners, series, events, bytes), of_owners)


async def _named_users(documents: CompanyDocuments, ids: list[str]) -> list[Named]:
    names: dict[str, str] = {}
    for start in range(0, len(ids), _AT_ONCE):
        for one in await documents.find_kept("users", ids[start : start + _AT_ONCE], ("name",)):
            names[one["id"]] = str(one.get("name") or "")
    return [Named(id, names.get(id, "")) for id in ids]

"""Whose events are kept, by project: joins the usage of the event store with tasks, models and projects.

100,000 tasks are usual. So a task is a number here, its name is read only if it is among those that are shown, and sums
are made by NumPy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from apiserver.events.model import Int64Array, Owner
from apiserver.stores.documents.inspection import DocumentInspection
from apiserver.stores.events.usage import Usage

#: The collections of owners of events.
OWNERS = (("tasks", False), ("models", True))


class Amount(NamedTuple):
    """How much is kept of something, in all and by type of event."""

    id: str
    """Of a project, a task or a model; "" for events that belong to no project."""
    name: str
    kind: str
    """project, task, model or history."""
    company: str
    bytes: int
    """Of events and files."""
    files: int
    """Bytes of files alone."""
    events: tuple[int, ...]
    """Points, samples and log lines, in the order of `TYPES`."""
    series: tuple[int, ...]
    parts: Mapping[str, int] = MappingProxyType({})
    """Of how many parts the events are, by what the engine calls these: "fragments"."""


@dataclass
class Kept:
    """The usage of each owner of events, and of files."""

    usage: Usage
    projects: list[tuple[str, str]]
    """Company and id of each project that an owner belongs to. The first one stands for no project."""
    project_of: npt.NDArray[np.int32]
    """The project of each owner, by its place."""
    found: npt.NDArray[np.bool_]
    """Whether each owner has a document, or needs none."""
    file_bytes: Int64Array = field(init=False)
    """Bytes of files of each owner; the last number is of files that belong to nobody."""

    def __post_init__(self) -> None:
        self.file_bytes = np.zeros(len(self.usage.owners) + 1, np.int64)

    @property
    def orphans(self) -> list[Owner]:
        """Owners of events that no document has."""
        return [self.usage.owners[n] for n in np.flatnonzero(~self.found).tolist()]

    def totals(self) -> Amount:
        """All together."""
        usage = self.usage
        files = int(self.file_bytes.sum())
        events, series = (tuple(table.sum(axis=0).tolist()) for table in (usage.events, usage.series))
        return Amount("", "", "all", "", int(usage.bytes.sum()) + files, files, events, series)

    def bytes_by_type(self) -> list[int]:
        """Bytes of the events of each type."""
        found: list[int] = self.usage.bytes.sum(axis=0).tolist()
        return found

    async def largest_owners(self, documents: DocumentInspection, most: int) -> list[Amount]:
        """The tasks, models and histories of most bytes; all of them if `most` is 0."""
        sizes = self.usage.bytes.sum(axis=1) + self.file_bytes[:-1]
        places = _largest(sizes, most)
        owners = [self.usage.owners[n] for n in places]
        names = await _owner_names(documents, set(owners))
        events, series = self.usage.events, self.usage.series
        return [
            Amount(
                *(owner.id, names.get(owner, ""), owner.kind, owner.company),
                *(int(sizes[n]), int(self.file_bytes[n]), tuple(events[n].tolist()), tuple(series[n].tolist())),
                parts={name: int(numbers[n]) for name, numbers in self.usage.parts.items()},
            )
            for n, owner in zip(places, owners, strict=True)
        ]

    async def largest_projects(self, documents: DocumentInspection, most: int) -> list[Amount]:
        """The projects of most bytes; all of them if `most` is 0."""
        sums = self.usage.summed([Owner(*project) for project in self.projects], self.project_of)
        events, series = sums.events, sums.series
        files = np.zeros(len(self.projects), np.int64)
        np.add.at(files, self.project_of, self.file_bytes[:-1])
        files[0] += self.file_bytes[-1]
        sizes = sums.bytes.sum(axis=1) + files
        places = [n for n in _largest(sizes, most) if sizes[n]]
        ids = {self.projects[n][1] for n in places}
        names = await _names(documents, "projects", ids)
        return [
            Amount(
                *(self.projects[n][1], names.get(self.projects[n][1], ""), "project", self.projects[n][0]),
                *(int(sizes[n]), int(files[n]), tuple(events[n].tolist()), tuple(series[n].tolist())),
            )
            for n in places
        ]


async def joined(usage: Usage, documents: DocumentInspection) -> Kept:
    """The usage, with the project of each owner, and whether the owner has a document."""
    places = {owner: n for n, owner in enumerate(usage.owners)}
    projects: dict[tuple[str, str], int] = {("", ""): 0}
    project_of = np.zeros(len(places), np.int32)
    has_document = np.array([not owner.has_document for owner in usage.owners], np.bool_)
    for collection, is_model in OWNERS:
        async for page in documents.each(collection, ["company", "project"]):
            for document in page:
                company = str(document.get("company", ""))
                place = places.get(Owner(company, document["id"], is_model))
                if place is not None:
                    has_document[place] = True
                    project = (company, str(document.get("project") or ""))
                    project_of[place] = 0 if not project[1] else projects.setdefault(project, len(projects))
    return Kept(usage, list(projects), project_of, has_document)


def _largest(sizes: Int64Array, most: int) -> list[int]:
    order: list[int] = np.argsort(-sizes, kind="stable").tolist()
    return order[:most] if most else order


async def _owner_names(documents: DocumentInspection, owners: Collection[Owner]) -> dict[Owner, str]:
    names: dict[Owner, str] = {}
    for collection, is_model in OWNERS:
        ids = {owner.id for owner in owners if owner.is_model == is_model}
        of_kind = await _names(documents, collection, ids)
        names |= {owner: of_kind[owner.id] for owner in owners if owner.is_model == is_model and owner.id in of_kind}
    return names


async def _names(documents: DocumentInspection, collection: str, ids: Collection[str]) -> dict[str, str]:
    """The names of the documents with these ids."""
    names: dict[str, str] = {}
    if ids:
        async for page in documents.each(collection, ["name"]):
            names.update(
                (document["id"], str(document.get("name") or "")) for document in page if document["id"] in ids
            )
    return names

"""Looks at all stores of a server, one after another: what they keep, and what is not well in them and between them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

from apiserver.common.sizes import counted, shown_bytes
from apiserver.operating.audit.checking import check as check_audit
from apiserver.operating.backup.working_copy import left_in
from apiserver.operating.doctor import kept
from apiserver.operating.doctor.files import NamedFiles, files_of
from apiserver.operating.doctor.kept import Amount, Kept
from apiserver.settings.settings import Settings
from apiserver.stores import formats
from apiserver.stores.data_folder import DataFolder, DataFolderError
from apiserver.stores.documents.base import DocumentStoreError
from apiserver.stores.documents.inspection import DocumentInspection
from apiserver.stores.engines import advice, document_engine, event_engine
from apiserver.stores.events.base import EventStoreError
from apiserver.stores.events.inspection import EventInspection
from apiserver.stores.inspection import Finding, Held

#: Findings of a kind that are told one by one.
MOST_OF_A_KIND = 100

Say = Callable[[str], None]


class CannotLook(Exception):
    """There is nothing to look at, or it cannot be reached."""


@dataclass
class Examined:
    """The result of an examination."""

    held: dict[str, list[Held]] = field(default_factory=dict)
    """The parts of each store."""
    total: Amount | None = None
    bytes_by_type: list[int] = field(default_factory=list)
    projects: list[Amount] = field(default_factory=list)
    owners: list[Amount] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    more: dict[str, int] = field(default_factory=dict)
    """How many findings of a kind are not among these."""
    notes: list[str] = field(default_factory=list)
    """Facts to know, on which nobody need act."""
    is_checked: bool = False

    @property
    def well(self) -> bool:
        """Whether nothing is wrong, as far as was looked."""
        return not self.findings

    @property
    def repairable(self) -> list[Finding]:
        """The findings that a repair can mend."""
        return [finding for finding in self.findings if finding.repair]

    def add(self, finding: Finding) -> None:
        """Note a finding."""
        if sum(one.kind == finding.kind for one in self.findings) < MOST_OF_A_KIND:
            self.findings.append(finding)
        else:
            self.more[finding.kind] = self.more.get(finding.kind, 0) + 1


@asynccontextmanager
async def looks(settings: Settings, folder: DataFolder) -> AsyncIterator[tuple[EventInspection, DocumentInspection]]:
    """A look at both stores while the block is open. CannotLook, EventStoreError, DocumentStoreError."""
    try:
        formats.require(settings)
    except DataFolderError as error:
        raise CannotLook(str(error)) from error
    for problem in formats.older(settings):
        raise CannotLook(f"{problem}. A server of this release brings it up to date when it starts: then look again")
    async with AsyncExitStack() as stack:
        inspections = []
        for what, engine in (("events", event_engine(settings)), ("documents", document_engine(settings))):
            look = engine.inspection(folder)
            if look is None:
                raise CannotLook(f"the engine of {what} shows nothing of itself")
            try:
                inspections.append(await stack.enter_async_context(look))
            except (EventStoreError, DocumentStoreError) as error:
                raise CannotLook(str(error)) from error
        yield cast(EventInspection, inspections[0]), cast(DocumentInspection, inspections[1])


async def examine(settings: Settings, *, checking: bool, most: int, say: Say) -> Examined:
    """Count the data in all stores that the settings name, and with `checking` look for damage.

    `most` is how many projects and tasks are told (0: all). CannotLook: there is nothing there, or no answer.
    """
    folder = DataFolder(settings.data)
    examined = Examined(is_checked=checking)
    async with looks(settings, folder) as (events, documents):
        examined.held = {"events": await events.held(), "documents": await documents.held()}
        say("reading what is kept")
        contents = await _kept(events, documents, examined)
        if (left := left_in(folder.root)) is not None:
            copy, size = left
            examined.notes.append(
                f"{copy} has {shown_bytes(size)}: a backup copied there what is in the engines, and was killed."
                " The next one deletes it"
            )
        if checking:
            examined.notes += await advice(settings)
            await _check(folder, events, documents, examined, say)
        if contents is not None:
            await _tell(folder, events, documents, contents, examined, most)
    if checking and contents is not None and contents.orphans:
        await _check_orphans(settings, folder, contents, examined)
    return examined


async def _kept(events: EventInspection, documents: DocumentInspection, examined: Examined) -> Kept | None:
    try:
        contents = await kept.joined(await events.usage(), documents)
    except (EventStoreError, DocumentStoreError) as error:
        examined.notes.append(str(error))
        return None
    examined.notes += contents.usage.estimated
    return contents


async def _check(
    folder: DataFolder, events: EventInspection, documents: DocumentInspection, examined: Examined, say: Say
) -> None:
    for what, store in (("events", events), ("documents", documents)):
        say(f"checking {what}")
        async for finding in store.findings():
            examined.add(finding)
    if folder.files.is_dir():
        say("checking files")
        files = NamedFiles(folder.files, documents)
        async for finding in files.missing():
            examined.add(finding)
        if files.unsent:
            examined.notes.append(
                f"{counted(files.unsent, 'files')} of models, or of artifacts of tasks that run, did not come: uploads"
                f" go on, have failed, or were refused. The first is that of {files.first_unsent}"
            )
    await _check_audit(folder, examined)


async def _check_audit(folder: DataFolder, examined: Examined) -> None:
    """Note the faults in the chain of the audit log."""
    try:
        checked = await asyncio.to_thread(check_audit, folder.audit)
    except OSError as error:
        examined.add(Finding("audit", "unreadable-audit", str(folder.audit), str(error), "it cannot be checked"))
        return
    examined.notes += [f"audit log: {note}" for note in checked.notes]
    for problem in checked.problems:
        meaning = "somebody may have changed the audit log, or the disk is damaged"
        examined.add(Finding("audit", "broken-audit", problem.partition(" does")[0], problem, meaning))


async def _tell(
    folder: DataFolder,
    events: EventInspection,
    documents: DocumentInspection,
    contents: Kept,
    examined: Examined,
    most: int,
) -> None:
    if folder.files.is_dir():
        files = await files_of(folder.files, events, documents, contents, looking=examined.is_checked)
        examined.held["files"] = [Held("files", int(contents.file_bytes.sum()), files.number, "files")]
        if files.unmentioned:
            names = ", ".join(name for _, name in files.largest)
            examined.notes.append(
                f"no task, model, image or plot names {counted(files.unmentioned, 'files')}, with"
                f" {counted(files.unmentioned_bytes, 'bytes')}: such files may have been uploaded by hand, belong to"
                " events that were refused, as by a quota, or be left over."
                f" The largest: {names}"
            )
    examined.total, examined.bytes_by_type = contents.totals(), contents.bytes_by_type()
    examined.projects = await contents.largest_projects(documents, most)
    examined.owners = await contents.largest_owners(documents, most)


async def _check_orphans(settings: Settings, folder: DataFolder, contents: Kept, examined: Examined) -> None:
    """Note the owners of events whom no document has at a second look either: they are not just being deleted."""
    async with looks(settings, folder) as (events, documents):
        again = await kept.joined(await events.usage(), documents)
    orphans = set(contents.orphans).intersection(again.orphans)
    for row in (row for row in again.usage.rows() if row.owner in orphans):
        owner = row.owner
        examined.add(
            Finding(
                *("events", "orphan-events", f"{owner.company}/{owner.kind}/{owner.id}"),
                f"the {owner.kind} {owner.id} is not there, and has {counted(row.events, row.type.plural)}",
                "nobody sees these events, and they take room",
            )
        )

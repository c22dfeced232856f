"""What is open while the server runs. All is opened in one order, and closed in the opposite one."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from apiserver.common.repeating import Repeating
from apiserver.data.exports import Exports
from apiserver.operating.audit.entries import Entry
from apiserver.operating.audit.log import AuditLog
from apiserver.operating.metrics.sharing import SECONDS, SharedCounters
from apiserver.operating.retention import checks
from apiserver.server.traces import Traces
from apiserver.services.access import defaults, fixed_users
from apiserver.services.access.credentials import Credential
from apiserver.services.backend import Backend
from apiserver.services.quotas import subjects
from apiserver.services.tasks import stopping
from apiserver.settings.settings import changed
from apiserver.stores import formats
from apiserver.stores.data_folder import DataFolder
from apiserver.stores.documents.base import DocumentStoreError
from apiserver.stores.engines import advice, owned, refuse_newer
from apiserver.stores.files.disk import FileStore

log = logging.getLogger(__name__)


class Job(Protocol):
    """What the server does in the background."""

    def start(self) -> None:
        """Begin."""

    async def close(self) -> None:
        """End, also in the middle."""


@dataclass(frozen=True, slots=True)
class Opening:
    """Opens the parts of a server."""

    backend: Backend
    folder: DataFolder
    files: FileStore
    exports: Exports
    counters: SharedCounters
    audit: AuditLog
    others: Sequence[Job]
    """What is started last, and ended first."""
    traces: Traces | None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Credential | None]:
        """A context in which the server can answer; gives the admin's access key if this start made it.

        Raises SchemaError and errors of the stores.
        """
        backend = self.backend
        async with AsyncExitStack() as opened:
            if self.traces is not None:
                opened.push_async_callback(self.traces.close)
            await self._open_stores(opened)
            await self._open_files(opened)
            await defaults.ensure_defaults(backend.documents, backend.settings)
            await fixed_users.ensure_fixed_users(backend.documents, backend.settings)
            await self._warn()
            new_credential = await defaults.ensure_admin(backend.documents, backend.settings)
            opened.push_async_callback(backend.last_metrics.close)
            await backend.last_metrics.restate()
            for job in self._jobs():
                opened.push_async_callback(job.close)
                job.start()
            opened.callback(backend.live.close)
            yield new_credential

    async def _warn(self) -> None:
        """Tell of settings that do nothing, or will fail, as what is stored shows."""
        settings, documents = self.backend.settings, self.backend.documents
        for sentence in [
            *await subjects.unknown(settings.quotas, documents),
            *await checks.warnings(settings, documents),
        ]:
            log.warning(sentence)

    async def _advise(self) -> None:
        """Tell what to set in the engines."""
        for sentence in await advice(self.backend.settings):
            log.warning(sentence)

    async def _open_stores(self, opened: AsyncExitStack) -> None:
        """Open the event store first and close it last: it locks the data folder.

        A server that does not get the lock must not touch any file.
        """
        opened.enter_context(owned(self.backend.settings, self.folder))
        if self.backend.settings.migrate_at_start:
            await refuse_newer(self.backend.settings)
        for store in (self.backend.events, self.backend.documents):
            opened.push_async_callback(store.close)
            await store.open()
        formats.note(self.folder)
        opened.callback(self.audit.close)
        self.audit.open()
        self.audit.add(Entry("server.start", what=changed(self.backend.settings)))
        opened.callback(lambda: self.audit.add(Entry("server.stop")))

    async def _open_files(self, opened: AsyncExitStack) -> None:
        opened.push_async_callback(self.files.close)
        await self.files.open()
        opened.callback(self.exports.close)
        self.exports.open()
        self.counters.open()

    def _jobs(self) -> Iterator[Job]:
        yield Repeating("asking how the engines are set", self._advise, None, expected=())
        yield Repeating("forgetting exports", self.exports.forget, 60, expected=(OSError,), at_once=False)
        yield Repeating("counting", self.counters.write, SECONDS, expected=(OSError,))
        yield self.backend.key_uses
        yield self.backend.history.sweeping
        yield self.backend.file_deletions.deleting
        silent = partial(stopping.end_silent, self.backend.documents)
        yield Repeating("stopping silent runs", silent, stopping.INTERVAL, expected=(DocumentStoreError,))
        if self.backend.documents.shared:  # other servers may use them, too
            yield self.backend.last_metrics.restating
        if self.backend.quotas is not None:
            yield from self.backend.quotas.jobs()
        yield from self.others

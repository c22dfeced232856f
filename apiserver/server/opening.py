"""What is open while the server runs. All is opened in one order, and closed in the opposite one."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from apiserver.common.repeating import Repeating
from apiserver.operating.audit.entries import Entry
from apiserver.operating.metrics.sharing import SECONDS
from apiserver.operating.retention import checks
from apiserver.server.parts import Parts
from apiserver.server.upkeep import Job
from apiserver.services.access import defaults, fixed_users
from apiserver.services.access.credentials import Credential
from apiserver.services.quotas import subjects
from apiserver.services.tasks import stopping
from apiserver.settings.settings import changed
from apiserver.stores import formats
from apiserver.stores.documents.base import DocumentStoreError
from apiserver.stores.engines import advice, owned, refuse_newer

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Opening:
    """Opens the parts of a server."""

    parts: Parts

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Credential | None]:
        """A context in which the server can answer; gives the admin's access key if this start made it.

        Raises SchemaError and errors of the stores.
        """
        backend, traces = self.parts.backend, self.parts.traces
        async with AsyncExitStack() as opened:
            if traces is not None:
                opened.push_async_callback(traces.close)
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
        settings, documents = self.parts.backend.settings, self.parts.backend.documents
        for sentence in [
            *await subjects.unknown(settings.quotas, documents),
            *await checks.warnings(settings, documents),
        ]:
            log.warning(sentence)

    async def _advise(self) -> None:
        """Tell what to set in the engines."""
        for sentence in await advice(self.parts.backend.settings):
            log.warning(sentence)

    async def _open_stores(self, opened: AsyncExitStack) -> None:
        """Open the event store first and close it last: it locks the data folder.

        A server that does not get the lock must not touch any file.
        """
        backend, folder, audit = self.parts.backend, self.parts.folder, self.parts.upkeep.audit
        opened.enter_context(owned(backend.settings, folder))
        if backend.settings.migrate_at_start:
            await refuse_newer(backend.settings)
        for store in (backend.events, backend.documents):
            opened.push_async_callback(store.close)
            await store.open()
        formats.note(folder)
        opened.callback(audit.close)
        audit.open()
        audit.add(Entry("server.start", what=changed(backend.settings)))
        opened.callback(lambda: audit.add(Entry("server.stop")))

    async def _open_files(self, opened: AsyncExitStack) -> None:
        opened.push_async_callback(self.parts.files.close)
        await self.parts.files.open()
        opened.callback(self.parts.exports.close)
        self.parts.exports.open()
        self.parts.counters.open()

    def _jobs(self) -> Iterator[Job]:
        backend = self.parts.backend
        yield Repeating("asking how the engines are set", self._advise, None, expected=())
        yield Repeating("forgetting exports", self.parts.exports.forget, 60, expected=(OSError,), at_once=False)
        yield Repeating("counting", self.parts.counters.write, SECONDS, expected=(OSError,))
        yield backend.key_uses
        yield backend.history.sweeping
        yield backend.file_deletions.deleting
        silent = partial(stopping.end_silent, backend.documents)
        yield Repeating("stopping silent runs", silent, stopping.INTERVAL, expected=(DocumentStoreError,))
        if backend.documents.shared:  # other servers may use them, too
            yield backend.last_metrics.restating
        if backend.quotas is not None:
            yield from backend.quotas.jobs()
        yield from self.parts.upkeep.jobs

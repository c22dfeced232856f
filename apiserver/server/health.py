"""`/health`: whether the server runs and can use its stores. Anyone may ask."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping

from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from apiserver import __version__
from apiserver.rpc.reply import SAFE_HEADERS
from apiserver.server.upkeep import Reporter
from apiserver.services.backend import Backend
from apiserver.stores.files.disk import FileStore

log = logging.getLogger(__name__)

#: A store that needs longer for its answer counts as down.
PATIENCE_SECONDS = 2


class Health:
    """The ASGI app: 200 if each store answers in time, else 503; the body says which store does not.

    It also tells what the parts of the server report that work in the background, such as whether backups are made.
    None of it is a reason to send nobody here.

    Requests that come at the same time share one check of the stores.
    """

    def __init__(
        self,
        backend: Backend,
        files: FileStore,
        reporters: Mapping[str, Reporter],
    ) -> None:
        """`reporters`: who says what else is in the body, by its fields."""
        self._backend = backend
        self._files = files
        self._reporters = reporters
        self._asking: asyncio.Task[dict[str, str]] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._stores(), name="health")
        stores = await asyncio.shield(self._asking)
        well = all(state == "ok" for state in stores.values())
        body: dict[str, object] = {
            "status": "ok" if well else "unavailable",
            "version": __version__,
            "stores": stores,
        }
        body |= {name: reporter.report() for name, reporter in self._reporters.items()}
        response = JSONResponse(body, 200 if well else 503)
        response.raw_headers += SAFE_HEADERS
        await response(scope, receive, send)

    async def _stores(self) -> dict[str, str]:
        checks: dict[str, Awaitable[object]] = {
            "documents": self._backend.documents.count("companies", {"id": self._backend.settings.company}),
            "events": self._backend.events.check(),
            "files": self._files.check(),
        }
        states = await asyncio.gather(*(state(name, check) for name, check in checks.items()))
        return dict(zip(checks, states, strict=True))


async def state(name: str, check: Awaitable[object], seconds: float = PATIENCE_SECONDS) -> str:
    """ "ok" if the check of a store passes in so many seconds, else "down"."""
    try:
        async with asyncio.timeout(seconds):
            await check
    except Exception as error:
        log.warning("the store of %s is down: %r", name, error)
        return "down"
    return "ok"

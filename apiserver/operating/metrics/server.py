"""`/metrics`: numbers about the server. `/livez` and `/readyz`: whether it lives, and whether it can serve."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import time
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from apiserver import __version__
from apiserver.common.commit import commit
from apiserver.common.counters import BOUNDS, Snapshot
from apiserver.common.errors import Refusal
from apiserver.common.gauges import Gauges
from apiserver.operating.metrics.exposition import OPENMETRICS, PLAIN, Family, is_openmetrics, text
from apiserver.operating.metrics.sharing import SharedCounters
from apiserver.rpc.auth import note_caller
from apiserver.rpc.errors import ApiError
from apiserver.rpc.reply import SAFE_HEADERS
from apiserver.rpc.statuses import answer_to, error_for
from apiserver.services.access.roles import check, check_owns_server
from apiserver.services.backend import Backend
from apiserver.services.store_errors import STORE_ERRORS
from apiserver.stores.data_folder import DataFolder

logger = logging.getLogger("apiserver.operating.metrics")

#: Seconds for which numbers of tasks, and sizes of files, are not looked up again.
_TASKS_SECONDS, _FILES_SECONDS = 15.0, 600.0
#: Roles may see these numbers if they may call this endpoint.
_ENDPOINT = "server.get_stats"


class Metrics:
    """The ASGI app. Callers need the `metrics_token` of the settings, or are admins of the server's own company."""

    def __init__(self, backend: Backend, folder: DataFolder, counters: SharedCounters, gauges: Gauges) -> None:
        self._backend = backend
        self._folder = folder
        self._counters = counters
        self._tasks: tuple[float, dict[str, int]] = (-_TASKS_SECONDS, {})
        self._files: tuple[float, int] = (-_FILES_SECONDS, 0)
        self._looking = asyncio.Lock()
        self._started = time.time()
        self._commit = commit()
        self.gauges = {**gauges}
        """By name, the meaning of further numbers, and the function that gets them."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        try:
            await self._admit(request)
            families = await self._families()
        except Exception as error:
            response = _refusal(error)
        else:
            openmetrics = is_openmetrics(request.headers.get("accept", ""))
            content = text(families, openmetrics=openmetrics)
            response = Response(content, headers={"content-type": OPENMETRICS if openmetrics else PLAIN})
        response.raw_headers += SAFE_HEADERS
        await response(scope, receive, send)

    async def _admit(self, request: Request) -> None:
        """Raise 401 or 403 unless the caller may see the numbers."""
        token = self._backend.settings.metrics_token
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if token and scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode()):
            return
        client = request.client.host if request.client else ""
        headers = dict(request.headers)
        try:
            caller = await self._backend.auth.authenticate(headers, method="GET", changes=False, client=client)
        except Refusal as error:
            if answer_to(error).code != 401 or scheme.lower() != "bearer":
                raise
            why = "it is not the metrics_token of the settings" if token else "the setting metrics_token is empty"
            raise Refusal(error.why, f"{error.message}, and {why}") from None
        note_caller(request.scope, caller)
        check(caller, _ENDPOINT, reads=True)
        check_owns_server(caller, self._backend.settings)

    async def _families(self) -> list[Family]:
        sums = self._counters.sums()
        async with self._looking:
            tasks, files = await self._task_counts(), await self._files_bytes()
        return [*_of_server(self._started, self._commit), *_counted(sums), *self._now(tasks, files)]

    async def _task_counts(self) -> dict[str, int]:
        now = time.monotonic()
        if now - self._tasks[0] >= _TASKS_SECONDS:
            found = await self._backend.documents.count_by("tasks", {}, ["status"])
            self._tasks = (now, {str(status): count for (status,), count in found.items()})
        return self._tasks[1]

    async def _files_bytes(self) -> int:
        now = time.monotonic()
        if now - self._files[0] >= _FILES_SECONDS:
            self._files = (now, await asyncio.to_thread(_size_of, self._folder.files))
        return self._files[1]

    def _now(self, tasks: dict[str, int], files: int) -> Iterator[Family]:
        family = Family("apiserver_tasks", "gauge", "Tasks by status.")
        for status, count in sorted(tasks.items()):
            family.add(count, status=status)
        yield family
        family = Family("apiserver_store_bytes", "gauge", "Bytes on this server's disk, by what they are for.")
        documents = sum(map(_size_of, self._folder.root.glob("documents.db*")))
        for name, size in (("events", _size_of(self._folder.events)), ("documents", documents), ("files", files)):
            family.add(size, store=name)
        yield family
        disk = os.statvfs(self._folder.root)
        family = Family("apiserver_disk_free_bytes", "gauge", "Bytes that are free on the disk of the data folder.")
        family.add(disk.f_bavail * disk.f_frsize)
        yield family
        for name, (help, gauge) in self.gauges.items():
            family = Family(f"apiserver_{name}", "gauge", help)
            family.add(gauge())
            yield family
        for name, value in self._backend.events.gauges().items():
            family = Family(f"apiserver_events_{name}", "gauge", "See the guide to monitoring.")
            family.add(float(value))
            yield family


def _of_server(started: float, commit: str) -> Iterator[Family]:
    family = Family("apiserver", "info", "Which server it is.")
    family.add(1, "_info", version=__version__, commit=commit)
    yield family
    family = Family("apiserver_start_time_seconds", "gauge", "When this process started, in seconds since 1970.")
    family.add(started)
    yield family


def _counted(sums: Snapshot) -> Iterator[Family]:
    family = Family("apiserver_requests", "counter", "Requests that were answered, by endpoint and HTTP status.")
    for endpoint, status, count in sorted(sums["requests"]):
        family.add(count, endpoint=endpoint, code=str(status))
    yield family
    family = Family("apiserver_request_seconds", "histogram", "How long requests took, by endpoint.")
    for endpoint, (*counts, seconds) in sorted(sums["durations"].items()):
        bounds = [*map(repr, BOUNDS), "+Inf"]
        for bound, below in zip(bounds, accumulate(counts), strict=True):
            family.add(int(below), "_bucket", endpoint=endpoint, le=bound)
        family.add(int(sum(counts)), "_count", endpoint=endpoint)
        family.add(seconds, "_sum", endpoint=endpoint)
    yield family
    family = Family("apiserver_events_added", "counter", "Events that were added, by type.")
    for type in ("scalars", "logs", "samples"):
        family.add(sums["counts"].get(f"events.{type}", 0), type=type)
    yield family
    for name, help in (
        ("event_bytes", "Bytes of bodies with events, after inflating."),
        ("quota_refusals", "Batches and uploads of which something was refused because of a quota."),
        ("loop_holds", "How often the event loop was held for longer than slow_loop_ms."),
        ("loop_held_seconds", "For how long the event loop was held then."),
    ):
        family = Family(f"apiserver_{name}", "counter", help)
        family.add(sums["counts"].get(name, 0))
        yield family


def _size_of(path: Path) -> int:
    """The bytes of a file, or of all files in a folder; what vanishes meanwhile counts as nothing."""
    if not path.is_dir():
        try:
            return path.stat().st_size
        except OSError:
            return 0
    size = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                size += os.lstat(os.path.join(folder, name)).st_size
            except OSError:
                continue
    return size


def _refusal(error: Exception) -> Response:
    refusal = error_for(error, STORE_ERRORS)
    if refusal is None:
        logger.error("/metrics failed", exc_info=error)
        refusal = ApiError(500, 0, "Internal server error")
    response = Response(f"{refusal.message}\n", refusal.code, media_type="text/plain")
    if refusal.code == 401:
        response.headers["www-authenticate"] = 'Basic realm="access key and secret"'
    if refusal.retry_after is not None:
        response.headers["retry-after"] = str(refusal.retry_after)
    return response


async def livez(request: Request) -> Response:
    """200 as long as the process answers. It asks no store."""
    response = Response("ok\n", media_type="text/plain")
    response.raw_headers += SAFE_HEADERS
    return response

"""Runs a server: the API's port and the files' port in one event loop, until a signal stops it.

If there are several workers, each has such an event loop in its own process, on the same ports. Both ports are bound
before anything else happens, so that a second server on the same ports touches no data.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path

import uvicorn
import uvloop
from starlette.types import ASGIApp

from apiserver.common.memory import keep_little
from apiserver.common.repeating import Repeating
from apiserver.events import scan
from apiserver.http import descriptors
from apiserver.http.certificate import Certificate, CertificateError
from apiserver.http.protocol import Protocol
from apiserver.http.proxies import Proxies
from apiserver.http.shutdown import answered_when_stopped
from apiserver.http.slots import Slots
from apiserver.http.tls import Tls
from apiserver.operating.metrics.server import Metrics
from apiserver.pages.server import is_built
from apiserver.rpc.schema import SchemaFileError
from apiserver.server.app import create_app
from apiserver.server.bounds import Bounds
from apiserver.server.client_configuration import api_address, client_configuration
from apiserver.server.processes import Child, Processes, StartFailed
from apiserver.server.signals import heard
from apiserver.server.stopping import Stop
from apiserver.server.systemd import passed_sockets, told
from apiserver.server.watchdog import watched
from apiserver.services.access.credentials import Credential
from apiserver.services.access.sign_in_links import new_path
from apiserver.settings.settings import Settings, SettingsError
from apiserver.stores.data_folder import DataFolder, DataFolderError, write_private
from apiserver.stores.documents.base import DocumentStore, DocumentStoreError
from apiserver.stores.events.base import EventStoreError
from apiserver.stores.files.disk import FileStoreError
from apiserver.stores.migrations import SchemaError

log = logging.getLogger(__name__)

_BACKLOG = 2048
#: Connections that are accepted from a port in one turn of the event loop. Each further one costs every connection a
#: system call that finds nothing: 16 take 6 % of the time of a small call. With 4, new clients wait while a turn makes
#: large answers: for 8 seconds if a thousand calls come that read 10,000 lines each.
_ACCEPTED_AT_ONCE = 16
#: Seconds that a thread may run while another waits. With Python's 5 ms, merging would get too little time beside a
#: busy event loop, and answers wait for merging.
_SWITCH_SECONDS = 0.0005
#: New objects after which Python looks for garbage. Large answers are many objects and no garbage. With Python's 700,
#: looking took a quarter of the time of reading them.
_GC_THRESHOLD = 20_000
#: Seconds for closing the stores, after those for requests under way. Then the process is killed.
_CLOSING = 20
#: Seconds more that the parent leaves a worker to end itself.
_ENDING = 2


class CannotServe(Exception):
    """The server cannot start; the message tells the user why."""


def run(settings: Settings, bounds: Bounds | None = None) -> None:
    """Serve until SIGTERM or SIGINT. Raises CannotServe."""
    ports = [settings.port, settings.files_port] if settings.files_port else [settings.port]
    sys.setswitchinterval(_SWITCH_SECONDS)
    descriptors.raise_limit()
    keep_little()
    os.umask(0o077)  # other users may not read the files that the server makes, whatever folder they are in
    sockets = listeners(settings.host, ports)
    if settings.workers == 1:
        return serve_on(settings, sockets, bounds=bounds)
    patience = settings.shutdown_seconds + _CLOSING + _ENDING
    try:
        Processes(settings.workers, partial(_work, settings, sockets, bounds), patience, partial(_close, sockets)).run()
    except StartFailed:
        raise CannotServe("the first worker did not start") from None


def serve_on(
    settings: Settings, sockets: list[socket.socket], worker: Child | None = None, bounds: Bounds | None = None
) -> None:
    """Serve on these sockets until a signal stops the server, on the second one files. Raises CannotServe."""
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(settings, sockets, worker, bounds))
    except (
        CertificateError,
        SettingsError,
        DataFolderError,
        SchemaFileError,
        SchemaError,
        DocumentStoreError,
        EventStoreError,
        FileStoreError,
    ) as error:
        raise CannotServe(str(error)) from error


def _work(settings: Settings, sockets: list[socket.socket], bounds: Bounds | None, worker: Child) -> int:
    """Serve as one of several workers; returns the exit code."""
    try:
        serve_on(settings, sockets, worker, bounds)
    except CannotServe as error:
        log.error("a worker cannot serve: %s", error)
        return 1
    return 0


def listeners(host: str, ports: list[int]) -> list[socket.socket]:
    """A socket for each port: one that a supervisor holds and has passed to this process, or a new one."""
    try:
        passed = passed_sockets()
    except ValueError as error:
        raise CannotServe(f"the supervisor passes sockets that cannot be used: {error}") from error
    sockets = [passed.pop(port) if port in passed else take_port(host, port) for port in ports]
    if passed:
        others = ", ".join(map(str, passed))
        raise CannotServe(f"the supervisor passes sockets of ports that the settings do not name: {others}")
    return sockets


def take_port(host: str, port: int) -> socket.socket:
    """A socket that is bound to host and port but does not listen yet. Raises CannotServe.

    The socket never blocks. Whether it does is a state that all processes share. If one worker made it blocking, even
    for a moment, another worker that finds no connection to accept would hang until one comes.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setblocking(False)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with _told_if_in_use(host, port):
        listener.bind((host, port))
    return listener


def _close(sockets: list[socket.socket]) -> None:
    """Close the parent's sockets when the workers stop: clients in their queues would wait for ever."""
    for listener in sockets:
        listener.close()


@contextlib.contextmanager
def _told_if_in_use(host: str, port: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = "another program listens there" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
        raise CannotServe(f"cannot listen on {host} port {port}: {reason}") from error


async def _serve(settings: Settings, sockets: list[socket.socket], worker: Child | None, bounds: Bounds | None) -> None:
    certificate = Certificate(Path(settings.tls_cert), Path(settings.tls_key)) if settings.tls_cert else None
    bounds = bounds or Bounds()
    app = create_app(settings, bounds)
    stop = Stop(app.end_streams)
    with contextlib.ExitStack() as until_closed:
        async with app.lifespan() as new_credential:
            for listener in sockets:
                with _told_if_in_use(*listener.getsockname()[:2]):  # another program may just have taken the port
                    listener.listen(_BACKLOG)
            if worker is None or worker.first:
                announce(settings, new_credential)
                await invite(settings, app.backend.documents)
            gc.freeze()
            gc.set_threshold(_GC_THRESHOLD)
            gc.enable()
            served: list[ASGIApp] = [app, app.files_port]
            limit = descriptors.connection_limit(settings.max_connections)
            slots = Slots(  # for connections of this process, on both ports together
                total=limit,
                per_address=settings.max_connections_per_address,
                proxies=Proxies(settings.trusted_proxies, settings.proxy_user_header),
                bounds=bounds.connections,
            )
            app.metrics.gauges["connections"] = ("Connections that are open.", lambda: len(slots))
            app.metrics.gauges["connections_limit"] = ("Most connections of this process.", lambda: limit)
            async with _protocol(certificate, slots, app.metrics) as protocol:
                servers = [stop.server(_config(settings, protocol, served.pop(0))) for _ in sockets]
                until_closed.enter_context(heard(stop.by_signal, settings.shutdown_seconds + _CLOSING))
                serving = (server.serve(copies(one)) for server, one in zip(servers, sockets, strict=True))
                with watched(settings.slow_loop_ms, app.held), _tied_to_parent(worker, stop):
                    async with told():
                        await asyncio.gather(*serving)
        stop.ended()


@contextlib.asynccontextmanager
async def _protocol(
    certificate: Certificate | None, slots: Slots, metrics: Metrics
) -> AsyncIterator[Callable[..., asyncio.Protocol]]:
    """What speaks with a client: HTTP, by TLS if there is a certificate, which is looked after meanwhile."""
    if certificate is None:
        yield partial(Protocol, slots)
        return
    metrics.gauges |= {
        "tls_certificate_end_seconds": ("When the certificate ends, since 1970.", lambda: certificate.end_seconds),
        "tls_certificate_outdated": ("1 if its changed files cannot be used.", lambda: float(certificate.outdated)),
    }
    looking = Repeating(
        "reading the certificate", certificate.refresh, slots.bounds.certificate_seconds, expected=(), at_once=False
    )
    looking.start()
    try:
        yield partial(Tls, certificate, slots)
    finally:
        await looking.close()


def copies(listener: socket.socket) -> list[socket.socket]:
    """The listener and copies of it: the event loop accepts one connection a turn from each (libuv since 1.46).

    With a single socket, a thousand connections at once would fill the system's queue, and further clients would wait.
    """
    return [listener, *(listener.dup() for _ in range(_ACCEPTED_AT_ONCE - 1))]


def announce(settings: Settings, credential: Credential | None) -> None:
    """Log where the server listens, and note its address in the data folder for commands.

    If this start made the admin's key, print the configuration for clients. The secret is printed only to a terminal:
    other output, such as that of a container, is stored and read by many.
    """
    where = {"host": settings.host, "port": settings.port, "files_port": settings.files_port}
    log.info("listening", extra={**where, "workers": settings.workers, "accelerator": scan.scanner is not None})
    folder = DataFolder(settings.data)
    try:
        write_private(folder.address, api_address(settings))
    except OSError as error:
        log.warning("cannot write %s: %s", folder.address, error.strerror)
    if credential is None or settings.admin_key:
        return
    client = client_configuration(settings, credential.key, credential.secret)
    kept = _kept(folder.client_configuration, client.conf())
    if sys.stdout.isatty():
        sys.stdout.write(
            f"The admin's access key was created. {kept}; put it into ~/clearml.conf:\n\n{client.conf()}\n"
            f"or into the environment:\n\n{client.exports()}\n"
        )
    else:
        sys.stdout.write(
            f"The admin's access key was created. {kept}; `apiserver user rotate admin` makes another. `apiserver link`"
            " prints a link that signs the admin in.\n"
        )
    sys.stdout.flush()


async def invite(settings: Settings, documents: DocumentStore) -> None:
    """Print a link that signs the admin in, if there are pages; only to a terminal, as it is a secret."""
    if not sys.stdout.isatty() or not settings.viewer or settings.web_url or not is_built():
        return
    try:
        path = await new_path(documents, settings.company)
    except (DocumentStoreError, LookupError) as error:
        return log.warning("no link to sign in: %s", error)
    sys.stdout.write(
        "To see your runs, open this link within ten minutes. It works once; `apiserver link` prints another.\n\n"
        f"    {api_address(settings)}{path}\n\n"
    )
    sys.stdout.flush()


def _kept(path: Path, conf: str) -> str:
    """Write the configuration to a file; returns a sentence that says where it is."""
    try:
        write_private(path, conf)
    except OSError as error:
        log.warning("cannot write %s: %s", path, error.strerror)
        return f"It could not be kept in {path}"
    return f"It is kept in {path}"


def _config(settings: Settings, protocol: Callable[..., asyncio.Protocol], app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        answered_when_stopped(app),
        loop="none",
        http=protocol,  # type: ignore[arg-type]  # is only called
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        reset_contextvars=True,  # so that a request gets no context of the one before it on its connection
        backlog=_BACKLOG,
        timeout_graceful_shutdown=settings.shutdown_seconds,
    )


@contextlib.contextmanager
def _tied_to_parent(worker: Child | None, stop: Stop) -> Iterator[None]:
    """Tell the parent that this worker is ready, and stop the worker if the parent dies."""
    if worker is None:
        yield
        return
    loop = asyncio.get_running_loop()

    def parent_died() -> None:
        loop.remove_reader(worker.lifeline)
        stop.because_of("the end of its parent process")

    loop.add_reader(worker.lifeline, parent_died)
    worker.ready()
    try:
        yield
    finally:
        loop.remove_reader(worker.lifeline)

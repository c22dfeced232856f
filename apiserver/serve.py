"""Running a server: the API's port and the files' port in one event loop, until a signal says stop.

With several workers each is such an event loop in a process of its own, on the same ports. Both ports are taken before
anything else happens, so that a second server on the same ports touches no data.
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
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import uvicorn
import uvloop
from starlette.types import ASGIApp

from apiserver.app import create_app
from apiserver.client_configuration import client_configuration
from apiserver.connections import descriptors
from apiserver.connections.ending import answered_when_stopped
from apiserver.connections.places import Places
from apiserver.connections.protocol import Protocol
from apiserver.connections.proxies import Proxies
from apiserver.data_folder import DataFolder, DataFolderError, write_private
from apiserver.events import scan
from apiserver.memory import give_back_large_blocks
from apiserver.processes import Child, Processes, StartFailed
from apiserver.rpc.schema import SchemaError
from apiserver.services.access.credentials import Credential
from apiserver.settings import Settings, SettingsError
from apiserver.signals import heard
from apiserver.stores.documents.base import DocumentStoreError
from apiserver.stores.events.base import EventStoreError
from apiserver.stores.files.disk import FileStoreError
from apiserver.watchdog import watched

log = logging.getLogger(__name__)

_BACKLOG = 2048
#: Connections that are taken from a port in one turn of the event loop.
_DOORS = 16
#: Seconds that a thread may go on while another waits for its turn. With Python's 5 ms, merging starves beside a busy
#: event loop, and answers wait for merging.
_TURN = 0.0005
#: Objects made before looking for garbage. Large answers are many objects and no garbage, but looking took a quarter
#: of the time to read them with Python's 700.
_GARBAGE = 20_000
#: Seconds that closing the stores may take, beside those for requests under way. Then the process is ended hard.
_CLOSING = 20
#: Seconds more that a worker has to do that itself.
_ENDING = 2


class CannotServe(Exception):
    """The server cannot start; the message says why, to the user."""


def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; raise CannotServe when that is not possible."""
    ports = [settings.port, settings.files_port] if settings.files_port else [settings.port]
    sys.setswitchinterval(_TURN)
    descriptors.raise_limit()
    give_back_large_blocks()
    os.umask(0o077)  # what training runs report is nobody else's, also in a folder that others may look into
    sockets = [take_port(settings.host, port) for port in ports]
    if settings.workers == 1:
        return _run(settings, sockets)
    patience = settings.shutdown_seconds + _CLOSING + _ENDING
    try:
        Processes(settings.workers, partial(_work, settings, sockets), patience, partial(_close, sockets)).run()
    except StartFailed:
        raise CannotServe("the first worker did not start") from None


def _run(settings: Settings, sockets: list[socket.socket], worker: Child | None = None) -> None:
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(settings, sockets, worker))
    except (SettingsError, DataFolderError, SchemaError, DocumentStoreError, EventStoreError, FileStoreError) as error:
        raise CannotServe(str(error)) from error


def _work(settings: Settings, sockets: list[socket.socket], worker: Child) -> int:
    """Serve as one of several; returns the exit code."""
    try:
        _run(settings, sockets, worker)
    except CannotServe as error:
        log.error("a worker cannot serve: %s", error)
        return 1
    return 0


def take_port(host: str, port: int) -> socket.socket:
    """A socket bound to host and port, which does not listen yet; CannotServe when that is not possible.

    It never blocks. All copies of it, in all processes, block or none does; if one process made it block while it
    starts, though only for a moment, another that finds no connection to take would wait for one, and answer nobody
    until it comes.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setblocking(False)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with _told_if_in_use(host, port):
        listener.bind((host, port))
    return listener


def _close(sockets: list[socket.socket]) -> None:
    """Of a parent of workers that end: clients would wait in the queues of its sockets for nobody."""
    for listener in sockets:
        listener.close()


def _listen(listener: socket.socket) -> None:
    """Have the system take connections; CannotServe when another program took the port at the same time."""
    with _told_if_in_use(*listener.getsockname()[:2]):
        listener.listen(_BACKLOG)


@contextlib.contextmanager
def _told_if_in_use(host: str, port: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = "another program listens there" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
        raise CannotServe(f"cannot listen on {host} port {port}: {reason}") from error


async def _serve(settings: Settings, sockets: list[socket.socket], worker: Child | None) -> None:
    app = create_app(settings)
    with contextlib.ExitStack() as until_closed:
        async with app.lifespan() as new_credential:
            for listener in sockets:
                _listen(listener)
            if worker is None or worker.first:
                _announce(settings, new_credential)
            gc.freeze()
            gc.set_threshold(_GARBAGE)
            gc.enable()
            served: list[ASGIApp] = [app, app.files_port]
            places = _places(settings)
            servers = [_Server(_config(settings, places, served.pop(0))) for _ in sockets]
            until_closed.enter_context(heard(partial(_stop, servers), settings.shutdown_seconds + _CLOSING))
            with watched(settings.slow_loop_ms), _tied_to_parent(worker, servers):
                serving = (server.serve(_doors(listener)) for server, listener in zip(servers, sockets, strict=True))
                await asyncio.gather(*serving)


def _doors(listener: socket.socket) -> list[socket.socket]:
    """The listener several times over: of each, the event loop takes one connection a turn (libuv's rule since 1.46).

    With one alone, a thousand that come at once fill the queue of the system, which then answers others late.
    """
    return [listener, *(listener.dup() for _ in range(_DOORS - 1))]


def _stop(servers: list[_Server]) -> None:
    """Have the servers stop; the second time, without waiting for requests under way. Called in any thread."""
    for server in servers:
        server.force_exit = server.should_exit
        server.should_exit = True


def _announce(settings: Settings, credential: Credential | None) -> None:
    """Say where the server listens and, when it made the admin's key itself, how clients are to be configured.

    The secret is shown to a terminal only: what is written elsewhere, as by a container, is kept and read by many.
    """
    where = {"host": settings.host, "port": settings.port, "files_port": settings.files_port}
    log.info("listening", extra={**where, "workers": settings.workers, "accelerator": scan.scanner is not None})
    if credential is None or settings.admin_key:
        return
    client = client_configuration(settings, credential.key, credential.secret)
    kept = _kept(DataFolder(settings.data).client_configuration, client.conf())
    if sys.stdout.isatty():
        sys.stdout.write(
            f"The admin's access key was made. {kept}; put it into ~/clearml.conf:\n\n{client.conf()}\n"
            f"or into the environment:\n\n{client.exports()}\n"
        )
    else:
        sys.stdout.write(f"The admin's access key was made. {kept}; `apiserver user rotate admin` makes another.\n")
    sys.stdout.flush()


def _kept(path: Path, conf: str) -> str:
    """Write the configuration, the only copy there is but for what a terminal shows; say where it is."""
    try:
        write_private(path, conf)
    except OSError as error:
        log.warning("cannot write %s: %s", path, error.strerror)
        return f"It could not be kept in {path}"
    return f"It is kept in {path}"


def _places(settings: Settings) -> Places:
    """The connections of this process, on both ports."""
    return Places(
        total=descriptors.connections(settings.max_connections),
        per_address=settings.max_connections_per_address,
        proxies=Proxies(settings.trusted_proxies),
    )


def _config(settings: Settings, places: Places, app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        answered_when_stopped(app),
        loop="none",
        http=partial(Protocol, places),  # type: ignore[arg-type]  # is only called
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        reset_contextvars=True,  # a request that follows another on its connection has nothing of it
        backlog=_BACKLOG,
        timeout_graceful_shutdown=settings.shutdown_seconds,
    )


class _Server(uvicorn.Server):
    """A uvicorn server that leaves signals to `signals.py`: two would overwrite each other's handlers."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.contextmanager
def _tied_to_parent(worker: Child | None, servers: list[_Server]) -> Iterator[None]:
    """Let the parent know that a worker serves, and stop it when the parent is gone."""
    if worker is None:
        yield
        return
    loop = asyncio.get_running_loop()

    def stop() -> None:
        loop.remove_reader(worker.lifeline)
        for server in servers:
            server.should_exit = True

    loop.add_reader(worker.lifeline, stop)
    worker.ready()
    try:
        yield
    finally:
        loop.remove_reader(worker.lifeline)

"""What the server and systemd tell each other. Any supervisor that uses the same variables does as well.

- `LISTEN_FDS`: sockets that the supervisor holds and passes on. It keeps them while the server restarts, so that nobody
  is refused meanwhile: connections wait in the sockets.
- `NOTIFY_SOCKET`: where the server says that it is ready, that it still lives (`WATCHDOG_USEC`), and that it stops.
"""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from apiserver.common.repeating import Repeating

#: The first of the sockets that are passed.
_FIRST = 3


def passed_sockets() -> dict[int, socket.socket]:
    """The sockets that were passed to this process, by port. Ask once: processes that it starts must not take them.

    ValueError if two have the same port.
    """
    process, count = os.environ.pop("LISTEN_PID", ""), os.environ.pop("LISTEN_FDS", "0")
    os.environ.pop("LISTEN_FDNAMES", None)
    if process != str(os.getpid()):
        return {}
    listeners: dict[int, socket.socket] = {}
    for number in range(_FIRST, _FIRST + int(count)):
        os.set_inheritable(number, False)
        listener = socket.socket(fileno=number)
        listener.setblocking(False)  # as `serve.take_port` says
        port = listener.getsockname()[1]
        if port in listeners:
            raise ValueError(f"two sockets of port {port} were passed")
        listeners[port] = listener
    return listeners


@asynccontextmanager
async def told() -> AsyncIterator[None]:
    """Inside the block, the supervisor knows that the server is ready and lives; then, that it stops."""
    await _tell("READY=1")
    patience = int(os.environ.get("WATCHDOG_USEC", "0")) / 1e6
    living = Repeating("telling that the server lives", lambda: _tell("WATCHDOG=1"), patience / 2, expected=())
    if patience:
        living.start()
    try:
        yield
    finally:
        await living.close()
        await _tell("STOPPING=1")


async def _tell(state: str) -> None:
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
        sending.setblocking(False)
        # An @ stands for the zero byte with which a name begins that is not in the file system.
        sending.sendto(state.encode(), f"\0{address[1:]}" if address.startswith("@") else address)

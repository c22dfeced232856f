"""Ways to run the real server in tests: in the test's event loop, or as a process that can be stopped and killed."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import EllipsisType
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen
from uuid import uuid4

import httpx

from apiserver.server.app import App, create_app
from apiserver.server.bounds import Bounds
from apiserver.services.access import defaults
from apiserver.services.access.credentials import create_user
from apiserver.services.access.roles import ADMIN
from apiserver.services.backend import Backend
from apiserver.services.bounds import CallBounds
from apiserver.settings.settings import Settings, shown
from tests import logs, warm

ADMIN_KEY = "ADMINKEYOFTHETESTS00"
ADMIN_SECRET = "admin-secret-of-the-tests-0123456789"
NEWEST = "2.34"

#: Seconds that anything is waited for: a busy machine takes long, and what never happens is a failure.
PATIENCE = 120
_PORTS = (12_000, 32_000)
#: Descriptors that keep other tests away from the last ports of `free_ports`, on which servers listen by then.
_LAST_NAMES: deque[int] = deque()
_MOST_NAMES = 64
#: What a password costs here: no time. It takes a core a third of a second otherwise.
CHEAP = 16
CHEAP_PASSWORDS = Bounds(calls=CallBounds(password_cost=CHEAP))
#: Trusts any certificate.
ANYBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
ANYBODY.check_hostname, ANYBODY.verify_mode = False, ssl.CERT_NONE


def _path(endpoint: str, version: str | None) -> str:
    return f"/v{version}/{endpoint}" if version else f"/{endpoint}"


def _answer(response: httpx.Response, expect: int) -> dict[str, Any]:
    answer: dict[str, Any] = response.json()
    assert response.status_code == expect, answer["meta"]
    assert answer["meta"]["result_code"] == expect
    data: dict[str, Any] = answer["data"] if expect == 200 else answer
    return data


# --- in this process --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Api:
    """The whole server behind an HTTP client, without sockets; `auth` is the admin's unless a call says otherwise."""

    app: App
    client: httpx.AsyncClient
    company: str
    auth: tuple[str, str]
    """The access key of the company's admin."""

    @property
    def backend(self) -> Backend:
        """What the handlers work with."""
        return self.app.backend

    async def call(
        self,
        endpoint: str,
        request: Mapping[str, Any] | None = None,
        *,
        version: str | None = NEWEST,
        expect: int = 200,
        auth: tuple[str, str] | EllipsisType | None = ...,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Call an endpoint with a JSON body: `data` of the answer, or all of it when anything but 200 is expected."""
        path, body = _path(endpoint, version), dict(request or {})
        return _answer(await self.raw("POST", path, json=body, auth=auth, headers=dict(headers or {})), expect)

    async def raw(self, method: str, path: str, *, auth: Any = ..., **options: Any) -> httpx.Response:
        """Any request, as httpx takes it; `auth=None` sends no credentials."""
        return await self.client.request(method, path, auth=self.auth if auth is ... else auth, **options)


@contextlib.asynccontextmanager
async def running_api(data: Path, bounds: Bounds | None = None, /, **settings: Any) -> AsyncIterator[Api]:
    """The server on the folder `data`, started; `settings` are fields of Settings."""
    fields = {"data": data, "reserve_bytes": 0, "admin_key": ADMIN_KEY, "admin_secret": ADMIN_SECRET, **settings}
    app = create_app(Settings(**fields), bounds or CHEAP_PASSWORDS)
    async with app.lifespan(), api_client(app) as client:
        yield Api(app, client, app.backend.settings.company, (ADMIN_KEY, ADMIN_SECRET))


@contextlib.asynccontextmanager
async def another_company(app: App) -> AsyncIterator[Api]:
    """The server as the admin of a new company sees it, which is as the first one is at a first start."""
    documents, company = app.backend.documents, uuid4().hex
    await defaults.ensure_company(documents, company, defaults.COMPANY_NAME)
    _, made = await create_user(documents, company, defaults.ADMIN_NAME, ADMIN)
    async with api_client(app) as client:
        yield Api(app, client, company, (made.key, made.secret))


def api_client(app: Any) -> httpx.AsyncClient:
    """A client of an ASGI app; exceptions that the app lets out reach the test."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://testserver", timeout=30)


# --- in a process of its own ------------------------------------------------------------------------


@dataclass(slots=True)
class Served:
    """`apiserver serve` on free ports of 127.0.0.1. `start` again after `stop` or `kill`: same ports, same data."""

    data: Path
    port: int
    files_port: int
    environment: dict[str, str]
    key: str = ADMIN_KEY
    secret: str = ADMIN_SECRET
    open_files: int = 0
    """How many files the process may open, if not as many as this one."""
    tree: Path | None = None
    """The folder of the sources, if not those that Python finds."""
    python: Path = Path(sys.executable)
    """The Python that runs it."""
    cold: bool = False
    """Whether Python itself is started, as for users, and not forked from a process that has imported everything."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    """What differs from the constants in the sources, by `module.NAME`: of engines, which take no bounds yet."""
    bounds: Bounds | None = None
    """Its limits, where they are others than those of users, such as times that a test would wait for."""
    process: warm.Process | None = None

    @property
    def api_url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}"

    @property
    def files_url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.files_port}"

    @property
    def by_tls(self) -> bool:
        return bool(self.environment.get("APISERVER_TLS_CERT"))

    @property
    def _scheme(self) -> str:
        return "https" if self.by_tls else "http"

    def client(self) -> httpx.Client:
        """An HTTP client with the admin's credentials; it trusts any certificate: to read all known ones takes long."""
        return httpx.Client(base_url=self.api_url, auth=(self.key, self.secret), timeout=PATIENCE, verify=ANYBODY)

    def call(
        self, endpoint: str, request: Mapping[str, Any] | None = None, *, version: str = NEWEST, expect: int = 200
    ) -> dict[str, Any]:
        """As Api.call, by the admin."""
        with self.client() as client:
            return _answer(client.post(_path(endpoint, version), json=dict(request or {})), expect)

    def start(self) -> None:
        """Start the process, and wait until it is well."""
        self.launch()
        self._wait_until_well()

    def launch(self) -> None:
        """Start the process, and wait for nothing."""
        self.process = self._process()
        logs.started(self.log, self.process)

    def _process(self) -> warm.Process:
        environment = {**os.environ, **self.environment}
        if not self.cold and self.tree is None and warm.may_fork(environment):
            command = ["serve", "--data", str(self.data)]
            return warm.Forked(command, environment, self.log, self.open_files, self.constants, self.bounds)
        assert not self.constants
        assert self.bounds is None
        with open(self.log, "ab") as output:
            limited = ["sh", "-c", f'ulimit -n {self.open_files} && exec "$@"', "sh"] if self.open_files else []
            return subprocess.Popen(
                [*limited, self.python, "-m", "apiserver", "serve", "--data", str(self.data)],
                env=environment,
                cwd=self.tree,  # Python looks for modules here first
                stdout=output,
                stderr=output,
            )

    def stop(self) -> int:
        """Ask the server to stop (SIGTERM); returns its exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> int:
        """Kill the server (SIGKILL), as a crash would; returns its exit code."""
        return self._end(signal.SIGKILL)

    @property
    def log(self) -> Path:
        """What the server wrote, to standard output and standard error."""
        return self.data.with_name(f"{self.data.name}.log")

    def _end(self, number: signal.Signals) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def _wait_until_well(self) -> None:
        wait_until(lambda: self._has_ended() or _answers(f"{self.api_url}/health"))
        assert not self._has_ended(), f"the server ended:\n{self.log.read_text()}"

    def _has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None


@contextlib.contextmanager
def served(
    data: Path,
    *,
    open_files: int = 0,
    tree: Path | None = None,
    cold: bool = False,
    ports: Sequence[int] = (),
    constants: Mapping[str, Any] | None = None,
    bounds: Bounds | None = None,
    variables: Mapping[str, str] | None = None,
    **settings: Any,
) -> Iterator[Served]:
    """A server on the folder `data`, running; `settings` are fields of Settings, `variables` of its environment.

    open_files, tree, cold, constants, bounds: as `Served` has them. ports: that of the API and that of files, if not
    any two.
    """
    port, files_port = ports or free_ports(2)
    fields = {
        "admin_key": ADMIN_KEY,
        "admin_secret": ADMIN_SECRET,
        "reserve_bytes": 0,
        "port": port,
        "files_port": files_port,
        **settings,
    }
    environment = {f"APISERVER_{name.upper()}": shown(value) for name, value in fields.items()}
    environment |= variables or {}
    server = Served(
        data,
        port,
        files_port,
        environment,
        open_files=open_files,
        tree=tree,
        cold=cold,
        constants=constants or {},
        bounds=bounds,
    )
    try:
        server.start()
        yield server
    finally:
        if server.process is not None and server.process.poll() is None:
            server.stop()


def apiserver(*arguments: object, variables: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """A command of apiserver, started: all that it writes goes to its `stdout`."""
    command = [sys.executable, "-m", "apiserver", *map(str, arguments)]
    environment = {**os.environ, **(variables or {})}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run(*arguments: object) -> str:
    """What a command of apiserver writes; AssertionError if it fails."""
    code, written = ended(*arguments)
    assert code == 0, written
    return written


def ended(*arguments: object, variables: Mapping[str, str] | None = None) -> tuple[int, str]:
    """The exit code of a command of apiserver, and what it writes; `variables` are of its environment, besides ours."""
    environment = {**os.environ, **(variables or {})}
    if not warm.may_fork(environment):
        process = apiserver(*arguments, variables=variables)
        written, _ = process.communicate(timeout=PATIENCE)
        return process.returncode, written
    with tempfile.NamedTemporaryFile() as output:
        forked = warm.Forked([*map(str, arguments)], environment, Path(output.name))
        return forked.wait(PATIENCE), output.read().decode()


def told_to_stop_under_way(server: Served) -> int:
    """The status of a request whose body goes on when the server has been told to stop, and takes no connections."""
    assert server.process is not None
    process = server.process
    body = json.dumps({"name": "late", "description": ""}).encode()

    def pieces() -> Iterator[bytes]:
        yield body[:5]
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: not listens(server.port))
        yield body[5:]

    with server.client() as client:
        return client.post("/v2.34/projects.create", content=pieces()).status_code


def listens(port: int) -> bool:
    """Whether connections to a port of 127.0.0.1 are taken."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Return when the condition holds; AssertionError when it does not in time.

    Who has waited for long looks less often, and so does who looks for long: it takes CPU time that others wait for.
    """
    began = looked = time.monotonic()
    while not condition():
        now = time.monotonic()
        assert now - began < seconds, "what was waited for did not happen"
        time.sleep(max(min(0.02 + (now - began) / 20, 0.25), min(now - looked, 1.0)))
        looked = time.monotonic()


def kept_ports(count: int) -> list[int]:
    """Free ports that stay with who asks: nobody else is given them, also while no server listens there."""
    return [port for port, _ in _taken_ports(count)]


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on, and that no other process of tests is given for a while.

    They lie below those that the system gives to outgoing connections, so that none of these takes them meanwhile.
    """
    taken = _taken_ports(count)
    _LAST_NAMES.extend(name for _, name in taken)
    while len(_LAST_NAMES) > _MOST_NAMES:
        os.close(_LAST_NAMES.popleft())
    return [port for port, _ in taken]


def _taken_ports(count: int) -> list[tuple[int, int]]:
    """Ports, each with the descriptor of a name that keeps all tests of this machine away until it is closed."""
    taken: list[tuple[int, int]] = []
    while len(taken) < count:
        port = random.randrange(*_PORTS)
        with contextlib.suppress(OSError), socket.socket() as listener, socket.socket(socket.AF_UNIX) as name:
            name.bind(f"\0events-test-port-{port}")
            listener.bind(("127.0.0.1", port))
            taken.append((port, name.detach()))
    return taken


def basic(key: str = ADMIN_KEY, secret: str = ADMIN_SECRET) -> str:
    """An Authorization header for an access key."""
    return "Basic " + b64encode(f"{key}:{secret}".encode()).decode()


def bearer(token: str) -> dict[str, str]:
    """The headers of a call with a token."""
    return {"authorization": f"Bearer {token}"}


async def new_user(api: Api, name: str, role: str = "user") -> tuple[str, tuple[str, str]]:
    """The id and the access key of a new user of the company."""
    user, made = await create_user(api.backend.documents, api.company, name, role)
    return user["id"], (made.key, made.secret)


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5, context=ANYBODY) as response:
            return bool(response.status == 200)
    except (URLError, ConnectionError, TimeoutError):
        return False

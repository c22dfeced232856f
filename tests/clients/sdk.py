"""Runs scripts with the real `clearml` package, each in a process of its own, against a served port.

They are configured by the `clearml.conf` that the server itself hands out, and by how they send.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from apiserver.server.client_configuration import ClientConfiguration
from tests.harness import Served

ROOT = Path(__file__).parents[2]
SCRIPTS = Path(__file__).parent / "scripts"
#: Where `make test` installs the clients.
DEFAULT_PYTHON = ROOT / ".venv-clients" / "bin" / "python"
DEFAULT_OLD_CLIENTS = ROOT / ".venv-old-clients"
#: Versions of the SDK that cannot be imported from Python 3.11 on.
_UP_TO_3_10 = ("1.0.5", "1.1.6")
#: Has the SDK send from a thread. As installed, it sends from a process of its own, which looks only every five seconds
#: whether it shall send what there is, or end: each run waits for it three times.
_AT_ONCE = "sdk.development.report_use_subprocess: false\n"


def clients_python() -> Path | None:
    """The Python that has `clearml` installed, if there is one."""
    python = Path(os.environ.get("CLIENTS_PYTHON", DEFAULT_PYTHON))
    return python if python.exists() else None


def newest_version() -> str:
    """The version of the SDK that all other tests use."""
    pinned = re.search(r"^clearml==(\S+)$", (ROOT / "requirements" / "clients.in").read_text(), re.MULTILINE)
    assert pinned is not None
    return pinned[1]


def old_versions() -> list[str]:
    """The other versions of the SDK that are tested, from old to new."""
    names = [path.stem for path in (ROOT / "requirements" / "old-clients").glob("[0-9]*.txt")]
    return sorted(names, key=lambda name: [int(part) for part in name.split(".")])


def python_with(version: str) -> Path | str:
    """The Python that has this version of `clearml` installed, or why nothing here can run it."""
    if version == newest_version():
        return clients_python() or _missing("clearml", "CLIENTS_PYTHON")
    environment = Path(os.environ.get("OLD_CLIENTS", DEFAULT_OLD_CLIENTS)) / version
    if not environment.exists():
        _missing(f"clearml {version}", "OLD_CLIENTS")
    newest = 10 if version in _UP_TO_3_10 else 11
    minor = [int(folder.name.removeprefix("python3.")) for folder in environment.glob("lib/python3.*")]
    if not minor or minor[0] > newest:
        return f"clearml {version} runs on Python 3.9 to 3.{newest}, of which `make` found none"
    return environment / "bin" / "python"


def _missing(what: str, variable: str) -> NoReturn:
    pytest.skip(f"no {what} package: `make test` installs it, or set {variable}")


class Sdk:
    """The SDK of one user. It sends at once, unless it is to do so `as_installed`."""

    def __init__(
        self, python: Path, home: Path, configuration: ClientConfiguration, *, as_installed: bool = False
    ) -> None:
        self._python = python
        self._home = home
        (home / "clearml.conf").write_text(configuration.conf() + ("" if as_installed else _AT_ONCE))
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "CLEARML_CACHE_DIR": str(home / "cache"),
            "PYTHONUNBUFFERED": "1",
        }

    @property
    def python(self) -> Path:
        """The Python that has the SDK."""
        return self._python

    @property
    def folder(self) -> Path:
        """Where scripts run."""
        return self._home

    def start(self, script: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Start a script; what it prints can be read from its pipes."""
        return subprocess.Popen(
            [self._python, SCRIPTS / script, *arguments],
            cwd=self._home,
            env={**self._environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, script: str, *arguments: str, timeout: float = 180) -> Any:
        """Run a script to its end; return what its last line says as JSON."""
        process = self.start(script, *arguments)
        try:
            return self.finish(process, timeout=timeout)
        finally:
            process.kill()

    def command(self, name: str, *arguments: str) -> str:
        """Run a command of the SDK, such as `clearml-data`, to its end; return what it prints."""
        process = self.start(str(self._python.with_name(name)), *arguments)
        try:
            return self._output(process, timeout=180)
        finally:
            process.kill()

    @contextlib.contextmanager
    def agent(self, queue: str, *, worker: str) -> Iterator[subprocess.Popen[str]]:
        """A ClearML agent that takes tasks from the queue and runs them with the Python that it has itself."""
        environment = {
            "CLEARML_WORKER_NAME": worker,
            "CLEARML_AGENT_SKIP_PYTHON_ENV_INSTALL": "1",
            "CLEARML_AGENT_QUEUE_POLL_FREQ_SEC": "0.5",
        }
        with open(self._home / "agent.log", "w") as output:
            process = subprocess.Popen(
                [self._python, "-m", "clearml_agent", "daemon", "--queue", queue, "--foreground", "--cpu-only"],
                cwd=self._home,
                env={**self._environment, **environment},
                stdout=output,
                stderr=output,
                text=True,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            self.kill(process)

    @staticmethod
    def kill(process: subprocess.Popen[str]) -> None:
        """Kill a started script and the processes that the SDK made for it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    @staticmethod
    def finish(process: subprocess.Popen[str], *, timeout: float = 180) -> Any:
        """Wait for a started script; return what its last line says as JSON. Threads of the SDK may print behind it."""
        output = Sdk._output(process, timeout=timeout)
        last = next(line for line in reversed(output.splitlines()) if line.startswith("{"))
        return json.JSONDecoder().raw_decode(last)[0]

    @staticmethod
    def _output(process: subprocess.Popen[str], *, timeout: float) -> str:
        output, errors = process.communicate(timeout=timeout)
        assert process.returncode == 0, f"{output[-3000:]}\n{errors[-5000:]}"
        return output


def sdk_of(server: Served, home: Path, *, as_installed: bool = False) -> Sdk:
    """The SDK of a server's admin, whose home is the folder; skips the test where there is none."""
    python = clients_python() or _missing("clearml", "CLIENTS_PYTHON")
    return sdk_with(python, server, home, as_installed=as_installed)


def sdk_with(python: Path, server: Served, home: Path, *, as_installed: bool = False) -> Sdk:
    """The SDK that this Python has, of a server's admin, whose home is the folder."""
    configuration = ClientConfiguration(server.api_url, server.files_url, server.key, server.secret)
    return Sdk(python, home, configuration, as_installed=as_installed)

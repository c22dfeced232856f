"""Disks that become full under a running server, and have room again.

Either nothing may grow beyond a size (a limit of the process: anyone may set it), or a small file system is really full
(where mounting is allowed).
"""

from __future__ import annotations

import contextlib
import resource
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from tests.harness import Served

_UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
_SIZE = 32 * 2**20


class Disk(Protocol):
    """Where a server's data are."""

    def fill(self, server: Served) -> None:
        """Leave no room."""

    def free(self, server: Served) -> None:
        """Make room again."""


@dataclass(frozen=True)
class Limited:
    """No file may be written beyond `size` bytes; files that are larger stay as they are."""

    size: int

    def fill(self, server: Served) -> None:
        assert server.process is not None
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (self.size, resource.RLIM_INFINITY))

    def free(self, server: Served) -> None:
        assert server.process is not None
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, _UNLIMITED)


@dataclass(frozen=True)
class Mounted:
    """A file system in memory; a file takes what is free of it."""

    folder: Path

    @property
    def _ballast(self) -> Path:
        return self.folder / "ballast"

    def fill(self, server: Served) -> None:
        with open(self._ballast, "ab", buffering=0) as file:
            for size in (2**16, 1):
                with contextlib.suppress(OSError):
                    while file.write(bytes(size)):
                        pass

    def free(self, server: Served) -> None:
        self._ballast.unlink()


@contextlib.contextmanager
def mounted(folder: Path) -> Iterator[Mounted]:
    """A small file system, mounted at `folder`; the test is skipped where that is not allowed."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "none", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"nothing can be mounted here: {error}")
    try:
        yield Mounted(folder)
    finally:
        subprocess.run(["umount", str(folder)], check=True, capture_output=True)

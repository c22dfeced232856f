"""Archives of classes (class data sharing): a JVM that need not read and verify them again starts in half of the time.

The first JVM of a home writes one, when it ends. A JVM ignores an archive of another JDK, or of other jars; but it
crashes when it reads one that is cut off. So the name of an archive says how many bytes it has.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from tests.engines import jvm


def option(home: Path, use: Callable[[str], bool]) -> str:
    """The option by which a JVM uses the archive in `home`.

    If there is none, `use` is to run a JVM until it ends, with the option that it gets, and to load what an archive is
    to have; it returns whether that went well.
    """
    with open(home / "archive.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return f"-XX:SharedArchiveFile={_whole(home) or _made(home, use)}"


def _whole(home: Path) -> Path | None:
    """The archive of this JDK, if it is there, and whole."""
    there = [path for path in home.glob(f"{_name()}-*.jsa") if path.stem == f"{_name()}-{path.stat().st_size}"]
    return there[0] if there else None


def _made(home: Path, use: Callable[[str], bool]) -> Path:
    """A new archive, instead of those that are there; an empty one, which JVMs ignore, if it cannot be made."""
    for path in home.glob("*.jsa"):
        path.unlink()
    partly = home / "archive.partly"
    partly.unlink(missing_ok=True)
    if not use(f"-XX:ArchiveClassesAtExit={partly}") or not partly.exists():
        partly.unlink(missing_ok=True)
        partly.touch()
    return partly.rename(home / f"{_name()}-{partly.stat().st_size}.jsa")


def _name() -> str:
    """Another one for each JDK."""
    return f"classes-{sha256((jvm.jdk() / 'release').read_bytes()).hexdigest()[:12]}"

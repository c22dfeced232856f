"""Engines from Maven artifacts: jars fetched and launchers compiled once, into the user's cache."""

from __future__ import annotations

import fcntl
import inspect
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

from tests.engines.nodes import Unavailable

SOURCES = Path(__file__).with_name("java")
_OLDEST = 17
_FETCH_SECONDS = 900


def jdk() -> Path:
    """The folder of a JDK; Unavailable when there is none that can run the engines."""
    for folder in jdks():
        if (folder / "bin" / "javac").is_file() and _version(folder) >= _OLDEST:
            return folder
    raise Unavailable(f"no JDK {_OLDEST} or later on PATH, in JAVA_HOME or /usr/lib/jvm")


def home(engine: str, arrange: Callable[[Path], None] | None = None) -> Path:
    """The folder that an engine runs from: lib/ has the jars of its pom.xml, launcher.jar its launcher.

    engine: its folder below java/. arrange: adds what the engine wants besides, when the folder is made.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "events-apiserver-engines"
    made = cache / f"{engine}-{_fingerprint(engine, arrange)}"
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            with tempfile.TemporaryDirectory(dir=cache) as scratch:
                _make(Path(scratch), engine)
                if arrange is not None:
                    arrange(Path(scratch))
                # Not as a folder, as a JVM makes no archive of classes from folders.
                shutil.make_archive(f"{scratch}/launcher", "zip", f"{scratch}/classes")
                Path(scratch, "launcher.zip").rename(Path(scratch, "launcher.jar"))
                shutil.copytree(scratch, made.with_suffix(".partly"), dirs_exist_ok=True)
            made.with_suffix(".partly").rename(made)
    return made


def java(home: Path, heap: str, *options: str, quick: bool) -> list[str]:
    """A command that runs a launcher of `home`: its class and arguments are to be added.

    quick: compile little, which halves the CPU time of the first minutes and makes it slower afterwards.
    """
    memory = [f"-Xms{heap}", f"-Xmx{heap}", "-XX:+ExitOnOutOfMemoryError"]
    compiler = ["-XX:TieredStopAtLevel=1"] if quick else []
    path = ["-cp", f"{home / 'launcher.jar'}:{home / 'lib'}/*"]
    return [str(jdk() / "bin" / "java"), *memory, *compiler, *options, *path]


def _make(folder: Path, engine: str) -> None:
    compiler = jdk() / "bin" / "javac"
    if shutil.which("mvn") is None:
        raise Unavailable("no Maven (mvn)")
    pom, lib = SOURCES / engine / "pom.xml", folder / "lib"
    fetch = ["mvn", "-B", "-q", "-f", str(pom), "dependency:copy-dependencies", "-DincludeScope=runtime"]
    _run([*fetch, f"-DoutputDirectory={lib}"])
    launcher = [SOURCES / "Lifeline.java", *sorted((SOURCES / engine).glob("*.java"))]
    _run([str(compiler), "-nowarn", "-cp", f"{lib}/*", "-d", str(folder / "classes"), *map(str, launcher)])


def _run(command: list[str]) -> None:
    environment = {**os.environ, "JAVA_HOME": str(jdk())}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_FETCH_SECONDS, check=False)
    if done.returncode:
        raise Unavailable(f"{command[0]} failed: {(done.stdout + done.stderr)[-1500:]}")


def jdks() -> Iterator[Path]:
    on_path = shutil.which("javac")
    if on_path is not None:
        yield Path(on_path).resolve().parent.parent
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"])
    yield from sorted(Path("/usr/lib/jvm").glob("*"))


def _version(folder: Path) -> int:
    try:
        release = (folder / "release").read_text()
    except OSError:
        return 0
    found = re.search(r'^JAVA_VERSION="(\d+)', release, re.MULTILINE)
    return int(found[1]) if found else 0


def _fingerprint(engine: str, arrange: Callable[[Path], None] | None) -> str:
    """Changes when anything does that a home is made of."""
    of_engine = sorted(path for path in (SOURCES / engine).iterdir() if path.is_file())
    digest = sha256(b"" if arrange is None else inspect.getsource(arrange).encode())
    for path in (Path(__file__), SOURCES / "Lifeline.java", *of_engine):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]

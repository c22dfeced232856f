"""Builds the packages of a commit, so that they have the same bytes each time.

Tools put the time, the user and the folder of a build into what they make. Here the time is that of the commit
(`SOURCE_DATE_EPOCH`), and archives of sources are packed again without users.
"""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

_SDIST = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"


@contextmanager
def sources(root: Path, time: int) -> Iterator[Path]:
    """A folder of what git has of the last commit, with the pages that were built."""
    with TemporaryDirectory(prefix="release-") as place:
        source = Path(place, "source")
        source.mkdir()
        packed = subprocess.run(["git", "-C", root, "archive", "HEAD"], check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(source, filter="data")
        shutil.copytree(root / "viewer" / "dist", source / "viewer" / "dist", dirs_exist_ok=True)
        for path in source.rglob("*"):
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
            os.utime(path, (time, time))
        yield source


def packages(source: Path, folder: Path, time: int, *, accelerator: bool) -> list[Path]:
    """Build the packages into the folder: the wheel, the sources, and the accelerator's wheel."""
    _build_wheel(source, folder, time)
    sdist = [sys.executable, "-c", _SDIST, str(folder)]
    subprocess.run(sdist, cwd=source, env=_environment(source, time), stdout=subprocess.DEVNULL, check=True)
    [archive] = folder.glob("*.tar.gz")
    _pack_again(archive, time)
    if accelerator:
        _build_wheel(source / "accelerator", folder, time)
    [wheel] = folder.glob("events_apiserver-*.whl")
    return [wheel, *sorted(set(folder.iterdir()) - {wheel})]


def version_of(wheel: Path) -> str:
    """The version in the name of a wheel, such as events_apiserver-1.2-py3-none-any.whl."""
    return wheel.name.split("-")[1]


def _build_wheel(source: Path, folder: Path, time: int) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"]
    command = [*pip, "--no-build-isolation", "--wheel-dir", str(folder), "."]
    subprocess.run(command, cwd=source, env=_environment(source, time), check=True)


def _environment(source: Path, time: int) -> dict[str, str]:
    compiled = f"-ffile-prefix-map={source}=."  # else debug information would have the folder
    fixed = {"SOURCE_DATE_EPOCH": str(time), "PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8"}
    without = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if name not in without}
    return {**kept, **fixed, "CFLAGS": compiled, "CXXFLAGS": compiled}


def _pack_again(archive: Path, time: int) -> None:
    """Pack an archive of sources anew: in the order of names, of the time, and of nobody."""
    packed = io.BytesIO()
    with tarfile.open(archive) as old, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new:
        for item in sorted(old.getmembers(), key=lambda item: item.name):
            item.mtime, item.uid, item.gid, item.uname, item.gname, item.pax_headers = time, 0, 0, "", "", {}
            new.addfile(item, old.extractfile(item) if item.isfile() else None)
    with open(archive, "wb") as file, gzip.GzipFile("", "wb", 9, file, time) as compressed:
        compressed.write(packed.getvalue())

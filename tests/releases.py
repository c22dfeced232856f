"""Sources of releases before this one, which are commits of this repository."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def unpacked(commit: str, into: Path) -> Path:
    """A folder with the sources of a commit. Where it is not there, as in a shallow clone, the test is skipped."""
    packed = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True)
    if packed.returncode:
        pytest.skip(f"the commit {commit} is not in this clone: fetch it by `git fetch --unshallow`")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as sources:
        sources.extractall(into, filter="data")
    return into

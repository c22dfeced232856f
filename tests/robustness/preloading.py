"""Libraries in C that are preloaded into processes of tests, to change what system calls answer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def built(source: str, folder: Path) -> Path:
    """The library of a source beside this module, built into the folder; the test is skipped where that cannot be."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None or sys.platform != "linux":
        pytest.skip("system calls can only be changed on Linux, with a C compiler")
    code = Path(__file__).with_name(source)
    library = folder / code.with_suffix(".so").name
    if not library.exists():
        subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(code), "-ldl"], check=True)
    return library

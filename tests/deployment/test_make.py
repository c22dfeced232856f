"""`make run` builds the accelerator where it can, and starts the server in any case."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from shutil import copyfile, which

import pytest

ROOT = Path(__file__).parents[2]
#: What the recipes call, besides the compiler.
TOOLS = ("make", "rm", "sh", "touch")

pytestmark = pytest.mark.skipif(not which("make"), reason="no make")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The Makefile in a folder where all is installed but the accelerator; a call of pip or apiserver is printed."""
    copyfile(ROOT / "Makefile", tmp_path / "Makefile")
    for name in ("build.txt", "core.txt", "zig.txt"):
        _file(tmp_path / "requirements" / name)
    for path in ("pyproject.toml", "setup.py", "accelerator/scan.cpp"):
        _file(tmp_path / path)
    for tool in TOOLS:
        (tmp_path / "path").mkdir(exist_ok=True)
        (tmp_path / "path" / tool).symlink_to(str(which(tool)))
    _program(tmp_path / ".venv/bin/python", "exit 0")
    _program(tmp_path / ".venv/bin/pip", 'echo "pip $*"')
    _program(tmp_path / ".venv/bin/apiserver", 'echo "apiserver $*"')
    _file(tmp_path / ".venv/core.stamp")
    return tmp_path


def test_it_is_built_once_where_there_is_a_compiler(place: Path) -> None:
    _program(place / "path/c++", "exit 0")
    said = _make_run(place)
    assert said.index("Building the accelerator") < said.index("install --no-build-isolation ./accelerator")
    assert said.index("./accelerator") < said.index("\napiserver serve")
    again = _make_run(place)
    assert "accelerator" not in again
    assert "\napiserver serve" in again


def test_without_a_compiler_the_server_starts_without_it(place: Path) -> None:
    said = _make_run(place)
    assert "There is no C++ compiler: the server runs without its accelerator." in said
    assert "pip" not in said
    assert "\napiserver serve" in said


def test_when_it_cannot_be_built_the_server_starts_without_it(place: Path) -> None:
    _program(place / "path/c++", "exit 0")
    _program(place / ".venv/bin/pip", "echo 'no header'; exit 1")
    said = _make_run(place)
    assert said.index("no header") < said.index("The accelerator could not be built (see above)")
    assert "\napiserver serve" in said


def _make_run(place: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "CXX"))}
    environment["PATH"] = str(place / "path")
    command = ["make", "run", f"PYTHON={place / '.venv/bin/python'}", "OLD_PYTHON="]
    done = subprocess.run(
        command, cwd=place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def _program(path: Path, script: str) -> None:
    _file(path)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def _file(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()

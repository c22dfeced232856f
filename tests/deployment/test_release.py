"""A release: what is in it, that it can be made again, and that it starts."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from apiserver import __version__
from tests.deployment.compose import ROOT
from tests.harness import Served, free_ports

pytestmark = [
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no git"),
    pytest.mark.skipif(not (ROOT / "viewer/dist/index.html").exists(), reason="no pages: `make viewer` builds them"),
]


def release(folder: Path, *flags: str) -> Path:
    """A release of the last commit."""
    subprocess.run([sys.executable, "-m", "deploy.release", str(folder), *flags], cwd=ROOT, check=True)
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return release(tmp_path_factory.mktemp("release") / "dist", "--without-accelerator")


def one(folder: Path, pattern: str) -> Path:
    [found] = folder.glob(pattern)
    return found


def read(folder: Path, pattern: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(one(folder, pattern).read_text())
    return content


def test_each_file_has_its_sum(made: Path) -> None:
    sums = dict(line.split("  ")[::-1] for line in (made / "SHA256SUMS").read_text().splitlines())
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in made.iterdir()}
    del files["SHA256SUMS"]
    assert sums == files
    assert len(files) == 4
    told = {subject["name"]: subject["digest"]["sha256"] for subject in read(made, "*.intoto.json")["subject"]}
    assert told.items() <= sums.items()
    assert len(told) == 3  # all but the statement itself


def test_the_wheel_has_the_pages_and_nothing_of_the_workshop(made: Path) -> None:
    with ZipFile(one(made, "*.whl")) as archive:
        names = archive.namelist()
    assert "apiserver/_resources/viewer/dist/index.html" in names
    assert any(name.startswith("apiserver/_resources/schemas/") for name in names)
    assert {name.split("/")[0] for name in names} == {"apiserver", f"events_apiserver-{__version__}.dist-info"}


def test_the_wheel_knows_its_commit(made: Path) -> None:
    with ZipFile(one(made, "*.whl")) as archive:
        source = archive.read("apiserver/common/commit.py").decode()
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert f'_ARCHIVED = "{head.strip()}"' in source


def test_the_sources_have_the_pages_and_name_nobody(made: Path) -> None:
    with tarfile.open(one(made, "*.tar.gz")) as archive:
        items = archive.getmembers()
    names = {item.name.partition("/")[2] for item in items}
    assert {"viewer/dist/index.html", "viewer/src/main.tsx", "pyproject.toml", "migrations", "schemas"} <= names
    assert {(item.uid, item.gid, item.uname, item.gname) for item in items} == {(0, 0, "", "")}
    assert len({item.mtime for item in items}) == 1


def test_the_bill_names_all_that_is_needed(made: Path) -> None:
    bill = read(made, "*.cdx.json")
    assert (bill["bomFormat"], bill["metadata"]["component"]["version"]) == ("CycloneDX", __version__)
    named = {item["purl"] for item in bill["components"]}
    pinned = re.findall(r"^([\w.-]+)==([^\s;\\]+)", (ROOT / "requirements" / "core.txt").read_text(), re.MULTILINE)
    assert {f"pkg:pypi/{name.lower()}@{version}" for name, version in pinned} <= named
    assert {"numpy", "uvloop", "preact", "@preact/signals"} <= {item["name"] for item in bill["components"]}
    assert not {"pytest", "typescript", "esbuild"} & {item["name"] for item in bill["components"]}
    [needs] = bill["dependencies"]
    assert set(needs["dependsOn"]) <= named
    assert not any("://" in json.dumps(item) for item in bill["components"])


def test_it_installs_in_an_empty_environment_and_starts(made: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    python = environment / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(one(made, "*.whl"))], check=True)
    [packages] = environment.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))  # what it needs is installed there
    port, files_port = free_ports(2)
    variables = {"APISERVER_PORT": str(port), "APISERVER_FILES_PORT": str(files_port), "PYTHONPATH": ""}
    variables |= {
        "APISERVER_ADMIN_KEY": "AKEYOFTHISTEST000000",
        "APISERVER_ADMIN_SECRET": "a-secret-of-this-test-012345",
    }
    server = Served(tmp_path / "data", port, files_port, variables, tree=tmp_path, python=python)
    server.key, server.secret = variables["APISERVER_ADMIN_KEY"], variables["APISERVER_ADMIN_SECRET"]
    server.start()
    try:
        with server.client() as client:
            page = client.get("/", headers={"accept": "text/html"})
        assert 'id="page"' in page.text
        server.call("debug.ping")
    finally:
        assert server.stop() == 0


@pytest.mark.longer
def test_the_same_commit_makes_the_same_bytes(tmp_path: Path) -> None:
    first, second = (release(tmp_path / name) for name in ("first", "second"))
    assert (first / "SHA256SUMS").read_text() == (second / "SHA256SUMS").read_text()
    check_in_each_python(one(first, "apiserver_accelerator-*.whl"), tmp_path / "unpacked")


def check_in_each_python(wheel: Path, folder: Path) -> None:
    """The accelerator's wheel works in this Python, and in each from 3.11 on that pyenv has on this machine."""
    assert "-cp311-abi3-" in wheel.name
    with ZipFile(wheel) as archive:
        archive.extractall(folder)
    body = b'{"type":"training_stats_scalar","task":"t","metric":"m","variant":"v","iter":3,"value":0.5}'
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); import apiserver_accelerator as it"
    code += f"; print(it.scan({body!r}, 0, 2**62)[1:5:3])"
    others = Path.home().glob(".pyenv/versions/*/bin/python3.1[1-9]")
    for python in (sys.executable, *map(str, others)):
        done = subprocess.run([python, "-Ic", code], capture_output=True, check=True)
        assert done.stdout == rb"([1], b'\x00\x00\x00\x00\x00\x00\xe0?')" + b"\n", python

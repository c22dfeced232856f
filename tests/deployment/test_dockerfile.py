"""The image: its steps replayed as far as that goes without docker, and the server started that they install."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from zipfile import ZipFile

import pytest

from apiserver.settings.settings import ENVIRONMENT_PREFIX
from apiserver.settings.sources import load
from tests.deployment.compose import ROOT
from tests.harness import ADMIN_KEY, ADMIN_SECRET, Served, free_ports

STEPS = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()

PAGES = ROOT / "viewer/dist"

#: What .dockerignore leaves out below the folders that it names, and what git ignores there.
NOT_COPIED = shutil.ignore_patterns("__pycache__", ".parsed", "node_modules", "dist", "build")


def _copied_into(folder: Path) -> None:
    """`COPY . .`: what .dockerignore leaves."""
    named = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for name in named:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=NOT_COPIED)
        else:
            shutil.copy(source, folder / name)


def test_what_docker_sees_is_enough_to_build_the_server(tmp_path: Path) -> None:
    source, wheels = tmp_path / "source", tmp_path / "wheels"
    source.mkdir()
    _copied_into(source)
    for step in STEPS:
        if step.startswith("COPY requirements"):
            assert (source / step.split()[1]).is_dir()
    for name in re.findall(r"-r (\S+)", "\n".join(STEPS)):
        assert (source / name).is_file()
    for step in STEPS:
        if step.startswith("COPY viewer/"):
            assert all((source / name).is_file() for name in step.split()[1:-1])
        if step.startswith("COPY --from=pages"):
            assert step == "COPY --from=pages /viewer/dist viewer/dist"
    (source / "viewer/dist").mkdir()
    (source / "viewer/dist/index.html").write_text("built in the first stage")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, "."], cwd=source, check=True)
    [wheel] = wheels.iterdir()
    with ZipFile(wheel) as archive:
        inside = archive.namelist()
    for folder in ("migrations", "schemas"):
        for path in (source / folder).rglob("*.*"):
            assert f"apiserver/_resources/{path.relative_to(source)}" in inside
    assert "apiserver/_resources/viewer/dist/index.html" in inside
    assert not [name for name in inside if "viewer/src" in name]
    assert any(fnmatch(name, "*/entry_points.txt") for name in inside)


def _build_stage() -> list[str]:
    """The steps of the stage in which the server is installed."""
    begin = STEPS.index("FROM python:3.13 AS build") + 1
    length = next(number for number, step in enumerate(STEPS[begin:]) if step.startswith("FROM"))
    return STEPS[begin : begin + length]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the commands of the Dockerfile install, in an environment of its own instead of /opt/apiserver."""
    source, environment = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("image") / "apiserver"
    _copied_into(source)
    shutil.copytree(PAGES, source / "viewer/dist")
    for step in _build_stage():
        if step.startswith("RUN "):
            command = step.removeprefix("RUN ").replace("/opt/apiserver", str(environment))
            command = command.replace("python -m venv", f"{sys.executable} -m venv")
            subprocess.run(command, shell=True, cwd=source, env={**os.environ, "PIP_NO_COMPILE": "1"}, check=True)
    return environment


#: What the extras and the accelerator are needed for.
_IMPORTS = "arro3.core, arro3.io, cryptography, google.protobuf, google_crc32c, obstore, opentelemetry.sdk.trace, yaml"
_IMPORTS += ", opentelemetry.exporter.otlp.proto.http, apiserver_accelerator"


@pytest.mark.check
@pytest.mark.skipif(not shutil.which("c++"), reason="no C++ compiler")
@pytest.mark.skipif(not (PAGES / "index.html").exists(), reason="no pages: `make viewer` builds them")
def test_what_it_installs_lacks_nothing(installed: Path, tmp_path: Path) -> None:
    python = installed / "bin/python"
    subprocess.run([python, "-c", f"import {_IMPORTS}"], check=True, cwd=tmp_path)
    [packages] = installed.glob("lib/python*/site-packages")
    assert (packages / "apiserver/py.typed").exists()
    assert list(packages.glob("events_apiserver-*.dist-info/licenses/NOTICE"))
    assert not [path for path in packages.iterdir() if path.name in ("pip", "setuptools")]
    port, files_port = free_ports(2)
    settings = {
        "admin_key": ADMIN_KEY,
        "admin_secret": ADMIN_SECRET,
        "port": str(port),
        "files_port": str(files_port),
        "backup_to": "s3://bucket/prefix",
        "oidc_issuer": "https://127.0.0.1:1",
        "oidc_client_id": "server",
        "traces_to": "http://127.0.0.1:1",
    }
    variables = {f"{ENVIRONMENT_PREFIX}{name.upper()}": value for name, value in settings.items()}
    variables |= {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "PYTHONPATH": ""}
    server = Served(tmp_path / "data", port, files_port, variables, tree=tmp_path, python=python)
    server.start()  # which needs the packages for buckets, signing in and traces
    try:
        assert re.search("listening.*accelerator=True", server.log.read_text())
        server.call("tasks.create", {"name": "first", "type": "training"})
        with server.client() as client:
            assert 'id="page"' in client.get("/", headers={"accept": "text/html"}).text
            assert client.get("/data/projects/*/tasks.parquet").content[:4] == b"PAR1"
    finally:
        server.stop()


def test_its_variables_are_settings() -> None:
    [step] = [step for step in STEPS if step.startswith("ENV")]
    variables = dict(word.split("=", 1) for word in shlex.split(step)[1:])
    settings = load(environ={name: value for name, value in variables.items() if name.startswith(ENVIRONMENT_PREFIX)})
    assert (settings.host, settings.data) == ("0.0.0.0", Path("/data"))
    assert f"EXPOSE {settings.port} {settings.files_port}" in STEPS


def test_the_server_is_not_root_and_owns_its_folder() -> None:
    assert "USER apiserver" in STEPS
    assert "VOLUME /data" in STEPS
    assert any("install --directory --owner apiserver --mode 700 /data" in step for step in STEPS)

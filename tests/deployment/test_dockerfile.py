"""The image: its steps replayed as far as that goes without docker."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from zipfile import ZipFile

from apiserver.setting_sources import load
from apiserver.settings import ENVIRONMENT_PREFIX
from tests.deployment.compose import ROOT

STEPS = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()

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

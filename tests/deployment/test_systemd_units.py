"""The units for systemd: valid, hardened, and about the same ports and folders as the settings beside them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from apiserver.settings.sources import load
from tests.deployment.compose import ROOT

FOLDER = ROOT / "deploy" / "systemd"
SERVICE, SOCKET = ((FOLDER / f"events-apiserver.{kind}").read_text("utf-8") for kind in ("service", "socket"))
#: What systemd calls OK, 0 (nothing to fear) to 10.
MOST_EXPOSED = 2.0

needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """The units for a machine where neither the server nor its user is installed."""
    service = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", SERVICE, flags=re.MULTILINE)
    service = re.sub(r"^(User|Group)=.*", r"\1=daemon", service, flags=re.MULTILINE)
    (tmp_path / "events-apiserver.service").write_text(service)
    (tmp_path / "events-apiserver.socket").write_text(SOCKET)
    return tmp_path


@needs_systemd
def test_systemd_takes_them(units: Path) -> None:
    command = ["systemd-analyze", "verify", "--man=no", *map(str, units.iterdir())]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")


@needs_systemd
def test_the_server_is_kept_from_what_it_does_not_need(units: Path) -> None:
    command = ["systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSED * 10:.0f}"]
    found = subprocess.run(
        [*command, str(units / "events-apiserver.service")], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout


def test_settings_and_units_are_about_the_same_ports_and_folders() -> None:
    settings = load(config=FOLDER / "apiserver.toml")
    assert re.findall(r"^ListenStream=(.*)$", SOCKET, re.MULTILINE) == [
        f"{settings.host}:{settings.port}",
        f"{settings.host}:{settings.files_port}",
    ]
    assert settings.data == Path("/var/lib/events-apiserver")
    assert f"StateDirectory={settings.data.name}\n" in SERVICE
    assert "--config /etc/events-apiserver/apiserver.toml" in SERVICE
    assert "ConfigurationDirectory=events-apiserver\n" in SERVICE


def test_a_stop_is_given_as_long_as_the_server_may_take() -> None:
    found = re.search(r"^TimeoutStopSec=(\d+)$", SERVICE, re.MULTILINE)
    assert found is not None
    assert int(found[1]) > load(config=FOLDER / "apiserver.toml").shutdown_seconds + 20 + 2  # as in serve.py

"""docker-compose.yml as a test sees it: read without docker, with what its services inherit put in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
PROFILES = ("default", "scale", "web")

Service = dict[str, Any]


def project() -> dict[str, Any]:
    """The whole file."""
    read: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return read


def services() -> dict[str, Service]:
    """Every service by name."""
    named: dict[str, Service] = project()["services"]
    return named


def env_file(service: Service) -> dict[str, str]:
    """What its env_file says, as it stands there."""
    if "env_file" not in service:
        return {}
    lines = (ROOT / service["env_file"]).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def environment(service: Service) -> dict[str, str]:
    """All variables that a service is started with, as they stand in the files."""
    return {**env_file(service), **service.get("environment", {})}


def mounts(service: Service) -> Iterator[tuple[str, str, list[str]]]:
    """Source, target and options of each volume."""
    for volume in service.get("volumes", []):
        source, target, *options = volume.split(":")
        yield source, target, options

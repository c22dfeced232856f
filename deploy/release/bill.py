"""The bill of materials (SBOM) in CycloneDX's JSON: what the server needs, and what its pages are made of.

Packages of Python are those that are pinned in `requirements/core.txt`; packages of the pages are those of
`viewer/package-lock.json` that are built in.
"""

from __future__ import annotations

import json
import re
import tomllib
import uuid
from base64 import b64decode
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_PINNED = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)", re.MULTILINE)
_NAME = re.compile(r"^[A-Za-z0-9._-]+")

Component = dict[str, Any]


def write(path: Path, source: Path, version: str, time: int) -> None:
    """Write the bill of the sources in a folder."""
    python, pages = _of_python(source), _of_pages(source)
    server = _component("pypi", "events-apiserver", version) | {
        "type": "application",
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }
    named = tomllib.loads((source / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    direct = {_normal(found[0]) for one in named if (found := _NAME.match(one))}
    needs = [one["bom-ref"] for one in python if one["name"] in direct] + [one["bom-ref"] for one in pages]
    content = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"timestamp": datetime.fromtimestamp(time, UTC).isoformat(), "component": server},
        "components": [*python, *pages],
        "dependencies": [{"ref": server["bom-ref"], "dependsOn": sorted(needs)}],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(content, sort_keys=True))
    path.write_text(json.dumps({**content, "serialNumber": f"urn:uuid:{serial}"}, indent=2) + "\n")


def _of_python(source: Path) -> list[Component]:
    pinned = _PINNED.finditer((source / "requirements" / "core.txt").read_text("utf-8"))
    return [_component("pypi", _normal(one["name"]), one["version"]) for one in pinned]


def _of_pages(source: Path) -> list[Component]:
    packages = json.loads((source / "viewer" / "package-lock.json").read_text("utf-8"))["packages"]
    found = []
    for place, package in sorted(packages.items()):
        if not place or package.get("dev"):
            continue  # the pages themselves, or a tool that builds them
        component = _component("npm", place.rpartition("node_modules/")[2], package["version"])
        method, _, digest = package["integrity"].partition("-")
        assert method == "sha512"
        component["hashes"] = [{"alg": "SHA-512", "content": b64decode(digest).hex()}]
        component["licenses"] = [{"license": {"id": package["license"]}}]
        found.append(component)
    return found


def _component(kind: str, name: str, version: str) -> Component:
    address = f"pkg:{kind}/{name.replace('@', '%40')}@{version}"
    return {"type": "library", "bom-ref": address, "name": name, "version": version, "purl": address}


def _normal(name: str) -> str:
    """The name of a package of Python in its normal form."""
    return re.sub(r"[-_.]+", "-", name).lower()

"""What a release was made of and how: a statement of in-toto with SLSA's predicate. It is not signed."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Iterable
from pathlib import Path

_SOURCES = ("requirements/build.txt", "requirements/core.txt", "viewer/package-lock.json")


def write(path: Path, source: Path, files: Iterable[Path], commit: str) -> None:
    """Write the statement about the files, which were built from the sources of a commit."""
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": file.name, "digest": _digest(file)} for file in files],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "events-apiserver/.ci/release/v1",
                "externalParameters": {"commit": commit},
                "internalParameters": {
                    "python": platform.python_version(),
                    "platform": f"{sys.platform}-{platform.machine()}",
                },
                "resolvedDependencies": [
                    {"name": "source", "digest": {"gitCommit": commit}},
                    *({"name": name, "digest": _digest(source / name)} for name in _SOURCES),
                ],
            },
            "runDetails": {"builder": {"id": "events-apiserver/.ci/release"}},
        },
    }
    path.write_text(json.dumps(statement, indent=2) + "\n")


def _digest(path: Path) -> dict[str, str]:
    return {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}

"""A real provider of OpenID Connect, of npm's `oidc-provider`, as a process that ends with the test."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent
CLIENT, SECRET = "events", "the secret of the tests"


@contextmanager
def running_provider(port: int, redirect: str, people: Mapping[str, Mapping[str, Any]], key: Path) -> Iterator[str]:
    """The address of a provider that knows `people`, by the names with which they sign in there, with any password.

    `redirect`: where it may send browsers; `key`: a file with its key, which is made if there is none. The test is
    skipped if there is no provider.
    """
    own = FOLDER.parents[1] / ".venv-node" / "bin"
    node = shutil.which("node", path=f"{own}:{os.environ['PATH']}")
    if node is None or not (FOLDER / "node_modules").is_dir():
        pytest.skip("there is no provider to sign in at: make provider")
    settings = json.dumps({"port": port, "redirect": redirect, "people": people, "key": str(key)})
    process = subprocess.Popen(
        [node, str(FOLDER / "provider.mjs"), settings],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"listening\n"
        yield f"http://127.0.0.1:{port}"
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()

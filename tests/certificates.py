"""Certificates for tests, made by the `openssl` of this machine."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

_KINDS = {"ec": ("ec", "-pkeyopt", "ec_paramgen_curve:P-256"), "rsa": ("rsa:2048",), "ed25519": ("ed25519",)}


@dataclass(frozen=True, slots=True)
class Pair:
    """The files of a certificate, which is its own authority, and of its key."""

    certificate: Path
    key: Path

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of a server that uses it."""
        return {"tls_cert": str(self.certificate), "tls_key": str(self.key)}


def new_pair(
    folder: Path, name: str = "a", *, kind: str = "ec", days: int = 3650, of: str = "DNS:localhost,IP:127.0.0.1"
) -> Pair:
    """A certificate of these hosts for so many days from now."""
    pair = Pair(folder / f"{name}.pem", folder / f"{name}.key")
    about = ["-subj", f"/CN={name}", "-addext", f"subjectAltName={of}"]
    command = ["openssl", "req", "-x509", "-nodes", "-newkey", *_KINDS[kind], *about]
    files = ["-keyout", str(pair.key), "-out", str(pair.certificate)]
    subprocess.run([*command, "-days", str(days), *files], check=True, capture_output=True)
    return pair


@cache
def lasting_pair() -> Pair:
    """One for all tests of this process."""
    return new_pair(Path(mkdtemp(prefix="certificates-")))

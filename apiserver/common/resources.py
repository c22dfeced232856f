"""Finds files that ship with the code but are not code: schemas and migrations.

An installed package has them inside itself, where `setup.py` puts them. In a checkout, they are at its top level.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parents[1]

#: The folder in `schemas` with their parsed form. It is made by an installation, or by a start if it can be written to.
PARSED = ".parsed"


def path(name: str) -> Path:
    """The path of `name`, such as "schemas" or "migrations/sqlite". Raises FileNotFoundError."""
    for root in (_PACKAGE / "_resources", _PACKAGE.parent):
        found = root / name
        if found.exists():
            return found
    raise FileNotFoundError(f"{name} is missing from this installation of apiserver")

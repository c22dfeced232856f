"""Files that ship with the code but are not code: schemas and migrations.

An installed package carries them inside itself (`setup.py` puts them there); in a checkout they lie at its top level.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent

#: The folder inside `schemas` for their parsed form, made when installing or, if it can be written to, when starting.
PARSED = ".parsed"


def path(name: str) -> Path:
    """Where `name` ("schemas", "migrations/sqlite") lies; raise FileNotFoundError when it is nowhere."""
    for root in (_PACKAGE / "_resources", _PACKAGE.parent):
        found = root / name
        if found.exists():
            return found
    raise FileNotFoundError(f"{name} is missing from this installation of apiserver")

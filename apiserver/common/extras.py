"""How optional packages are installed, for those who miss one."""

from __future__ import annotations


def installed_by(extra: str) -> str:
    """What to do where an extra is missing. The server is on no package index, so that happens in its clone."""
    return f"run 'make {extra}' (or pip install '.[{extra}]') in the clone of the server"

"""How names of projects are kept: parts between single slashes, without blanks around them. Imports nothing."""

from __future__ import annotations

MAX_DEPTH = 10
MAX_NAME = 1024


def cleaned_name(name: str) -> str:
    """The name in the form that is stored: `team/x` for `/team//x /`; "" if there is nothing between its slashes."""
    return "/".join(part for part in map(str.strip, name.split("/")) if part)

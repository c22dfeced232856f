"""Names of files and projects on the server, made of names that a source chose."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

from apiserver.services.projects.names import MAX_DEPTH, cleaned_name

#: The server takes names of up to 1,024 bytes.
_MOST_BYTES = 900
_LONGEST = 1024


def are_short(name: str, inside: Iterable[str]) -> bool:
    """Whether all names inside of a value, behind its own name, are ones that the server could take.

    Nested values whose names are copied without that bound take the square of their size.
    """
    return len(name) + 1 + max(map(len, inside), default=0) <= _LONGEST


def leaves(name: str, value: Any, separator: str) -> Iterator[tuple[str, Any]]:
    """The values inside of nested objects, by their full names; a value that is no object is the only one.

    An object stays one if it is empty, or if the names inside of it would be too long.
    """
    waiting = [(name, value)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict) and value and are_short(name, value):
            waiting.extend((f"{name}{separator}{key}", inner) for key, inner in reversed(value.items()))
        else:
            yield name, value


def project_name(name: str) -> tuple[str, bool]:
    """The name of a project as the server takes it, and whether it had too many levels.

    For example, " /team//x / y/" is "team/x/y". Of twelve levels a/b/…/l, the last three are one: a/b/…/i/j.k.l.
    """
    clean = cleaned_name(name) or name
    *whole, last = clean.split("/", MAX_DEPTH - 1)
    return "/".join([*whole, last.replace("/", ".")]), "/" in last


def file_name(*names: str) -> str:
    """The name of a file that lies in folders: each of `names` may have folders of its own, but leads nowhere else.

    For example, ("runs", "../a//b", "c.png") is "/runs/_/a/b/c.png".
    """
    parts = [part for name in names for part in name.replace("\0", "_").split("/") if part]
    plain = "/".join("_" if part in (".", "..") else part for part in parts)
    name = plain.encode("utf-8", "replace").decode()
    if len(name.encode()) > _MOST_BYTES:
        digest = hashlib.sha256(name.encode()).hexdigest()[:16]
        name = f"{name.encode()[: _MOST_BYTES // 2].decode(errors='ignore')}/{digest}-{name[-100:].rpartition('/')[2]}"
    return f"/{name}"

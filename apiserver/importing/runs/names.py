"""Names of files and projects on the server, made of names that a source chose."""

from __future__ import annotations

import hashlib

#: The server takes names of up to 1,024 bytes.
_MOST_BYTES = 900
#: The server takes no more levels of projects.
_MOST_LEVELS = 10


def project_name(name: str) -> tuple[str, bool]:
    """The name of a project as the server takes it, and whether it had too many levels.

    For example, " /team//x / y/" is "team/x/y". Of twelve levels a/b/…/l, the last three are one: a/b/…/i/j.k.l.
    """
    levels = [level for part in name.split("/") if (level := part.strip())]
    if len(levels) <= _MOST_LEVELS:
        return "/".join(levels) or name, False
    whole = levels[: _MOST_LEVELS - 1]
    return "/".join([*whole, ".".join(levels[_MOST_LEVELS - 1 :])]), True


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

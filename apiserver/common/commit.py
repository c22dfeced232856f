"""Which commit of the sources this is.

A release is made by `git archive`, which writes the commit here, as `.gitattributes` says. In a clone, git's own files
say which commit is checked out. Other installations do not know.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from pathlib import Path

_ARCHIVED = "$Format:%H$"
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@cache
def commit() -> str:
    """The commit in hexadecimal digits, in a clone that which was checked out at the first call; "" if nobody knows."""
    return _commit_in(_ARCHIVED) or checked_out(Path(__file__).parents[2] / ".git")


def checked_out(git: Path) -> str:
    """The commit that is checked out, by `.git` of a clone or a worktree; "" if it does not say."""
    with suppress(OSError, UnicodeError):
        if git.is_file():
            git = git.parent / git.read_text().removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text()
        if not head.startswith("ref:"):
            return _commit_in(head)
        branch = head.removeprefix("ref:").strip()
        if (of_worktrees := git / "commondir").exists():
            git = git / of_worktrees.read_text().strip()
        if (git / branch).exists():
            return _commit_in((git / branch).read_text())
        lines = (git / "packed-refs").read_text().splitlines()
        return next((_commit_in(line.split()[0]) for line in lines if line.endswith(f" {branch}")), "")
    return ""


def _commit_in(text: str) -> str:
    return text.strip() if _COMMIT.fullmatch(text.strip()) else ""

"""Writes tables into Markdown files, with a sentence that says when, where and with which commit they were measured."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

#: The section to write, if none is given.
FIGURES = "figures"


def markers(section: str = FIGURES) -> tuple[str, str]:
    """The lines before and after the table of a section in a Markdown file."""
    return f"<!-- {section} -->", f"<!-- end of {section} -->"


def head(note: str, *, quick: bool) -> str:
    """A sentence about the run. `note`: more to say about it."""
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, commit {_commit()}, {_processor()}, {os.cpu_count()} cores,"
        f" {platform.system()} {platform.release()}, Python {platform.python_version()}, numpy {np.__version__}"
        f"{f'; {note}' if note else ''}."
        + (" A quick run: its sizes are tiny, and its figures mean nothing." if quick else "")
    )


def has_markers(path: Path, section: str = FIGURES) -> bool:
    """Whether the file has the markers of a section, so that a table can be written into it."""
    begin, end = markers(section)
    return path.is_file() and 0 <= (text := path.read_text("utf-8")).find(begin) < text.find(end)


def insert(path: Path, sentence: str, table: str, section: str = FIGURES) -> None:
    """Replace the text between the markers of a section. The file has to have them."""
    begin, end = markers(section)
    before, _, rest = path.read_text("utf-8").partition(begin)
    _, _, after = rest.partition(end)
    path.write_text(f"{before}{begin}\n{sentence}\n\n{table}{end}{after}", "utf-8")


def _commit() -> str:
    """The commit, with a plus sign if files differ from it."""
    try:
        git = ["git", "-C", str(Path(__file__).parent)]
        commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
        changed = subprocess.run([*git, "diff", "--quiet", "HEAD"], check=False).returncode
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return commit.stdout.strip() + ("+" if changed else "")


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()

"""What belongs to a table that is kept: on which machine, when and from which state of the code it was measured."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

#: What stands between the markers, unless it is said.
FIGURES = "figures"


def markers(section: str = FIGURES) -> tuple[str, str]:
    """What stands before and after a section's table in a Markdown file."""
    return f"<!-- {section} -->", f"<!-- end of {section} -->"


def head(note: str, *, quick: bool) -> str:
    """One sentence about the run; `note` is what else is to be known of it."""
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, commit {_commit()}, {_processor()}, {os.cpu_count()} cores,"
        f" {platform.system()} {platform.release()}, Python {platform.python_version()}, numpy {np.__version__}"
        f"{f'; {note}' if note else ''}."
        + (" A quick run: its sizes are tiny, and its figures mean nothing." if quick else "")
    )


def has_markers(path: Path, section: str = FIGURES) -> bool:
    """Whether figures can be put into the file."""
    begin, end = markers(section)
    return path.is_file() and 0 <= (text := path.read_text("utf-8")).find(begin) < text.find(end)


def insert(path: Path, sentence: str, table: str, section: str = FIGURES) -> None:
    """Replace what stands between the section's markers of a Markdown file that has them."""
    begin, end = markers(section)
    before, _, rest = path.read_text("utf-8").partition(begin)
    _, _, after = rest.partition(end)
    path.write_text(f"{before}{begin}\n{sentence}\n\n{table}{end}{after}", "utf-8")


def _commit() -> str:
    """The commit, with a plus sign when the work tree differs from it."""
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

"""What belongs to a table that is kept: on which machine, when and from which state of the code it was measured."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from benchmarks.run import Sizes

BEGIN = "<!-- figures -->"
END = "<!-- end of figures -->"


def head(sizes: Sizes, *, quick: bool) -> str:
    """One sentence about the run."""
    grown = f"; grown: from {sizes.other_points:,} to {sizes.growth_points:,} points in other tasks"
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, commit {_commit()}, {_processor()}, {os.cpu_count()} cores,"
        f" {platform.system()} {platform.release()}, Python {platform.python_version()}, numpy {np.__version__}"
        f"{grown if sizes.growth_points else ''}."
        + (" A quick run: its sizes are tiny, and its figures mean nothing." if quick else "")
    )


def has_markers(path: Path) -> bool:
    """Whether figures can be put into the file."""
    return path.is_file() and 0 <= (text := path.read_text("utf-8")).find(BEGIN) < text.find(END)


def insert(path: Path, sentence: str, table: str) -> None:
    """Replace what stands between the markers of a Markdown file that has them."""
    before, _, rest = path.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{BEGIN}\n{sentence}\n\n{table}{END}{after}", "utf-8")


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

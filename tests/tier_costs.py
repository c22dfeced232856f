"""Times and CPU of `make quick`, `make test` and `make check`, written into the table of CONTRIBUTING.md.

    python -m tests.tier_costs [--check]

clones the last commit into an empty folder and runs `make test` there, which installs what it needs, then `make quick`
and `make test` again; with `--check`, also the rest of `make check`. It needs a quiet machine.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
_ROWS = re.compile(r"(<!-- tier costs.*?-->\n).*?(<!-- end -->)", re.DOTALL)


def cost(command: Sequence[str], folder: Path) -> tuple[float, float]:
    """Seconds and CPU seconds of a command, which has to succeed; it prints to standard error."""
    before, begun = os.times(), time.monotonic()
    subprocess.run(command, cwd=folder, check=True, stdout=sys.stderr)
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return time.monotonic() - begun, spent


def row(name: str, seconds: float, cpu: float) -> str:
    """`| make quick | 0:55 | 1:40 |`"""
    return f"| {name} | {_clock(seconds)} | {_clock(cpu)} |"


def _clock(seconds: float) -> str:
    return f"{round(seconds) // 60}:{round(seconds) % 60:02}"


def written(text: str, rows: Sequence[str]) -> str:
    """The text with these rows in the place of those between the marks."""
    heads = ["| command | time | CPU |", "|---|---:|---:|"]
    return _ROWS.sub(lambda marks: f"{marks[1]}\n" + "\n".join([*heads, *rows]) + f"\n\n{marks[2]}", text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    commands = {
        "`make test`, in a fresh clone": ["make", "test"],
        "`make quick`": ["make", "quick"],
        "`make test`": ["make", "test"],
        **({"`make check`, after `make test`": ["make", "check-rest"]} if asked.check else {}),
    }
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder, "clone")
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        rows = [row(name, *cost(command, clone)) for name, command in commands.items()]
    CONTRIBUTING.write_text(written(CONTRIBUTING.read_text(), rows))


if __name__ == "__main__":
    main()

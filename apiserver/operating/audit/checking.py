"""Checks the chain of the audit log: that every line carries the hash of the line before, and their numbers follow.

    checked = check(folder.audit)
    checked.problems    # [] if all is well: sentences, each with the file and the line
    checked.notes       # what one should know: lines that a crash cut, older files that were deleted

Whoever made all lines anew after a change is not found by this. Compare `last_hash` with one that was kept elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from apiserver.operating.audit.entries import NOTHING, hash_of, parsed
from apiserver.operating.audit.files import files_of

#: Problems that are told one by one.
_MOST = 100


@dataclass
class Checked:
    """The result of a check."""

    lines: int = 0
    first: int = 0
    """The number of the first line; 0 if there is none."""
    last: int = 0
    last_hash: str = NOTHING
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def well(self) -> bool:
        """Whether the chain is whole."""
        return not self.problems


def check(folder: Path) -> Checked:
    """Check all files of the log in a folder. Raises OSError. It may be called while a server writes."""
    checked, previous, number, cut = Checked(), NOTHING, 0, ""
    for where, line, is_whole in _lines(files_of(folder)):
        said = parsed(line) if is_whole else None
        checked.lines += 1
        number += 1
        if said is None:
            if cut:
                _add(checked, f"{cut} is no line of the log")
            cut = where
        elif checked.first == 0 and checked.lines == 1 and said["n"] > 1:
            checked.notes.append(f"the first line has the number {said['n']}: older files were deleted")
            number = said["n"]
        else:
            if said.get("previous") != previous:
                _add(checked, f"{where} does not carry the hash of the line before: a line was changed, or is missing")
            elif cut:
                checked.notes.append(f"{cut} was cut by a crash")
            if said["n"] != number:
                _add(checked, f"{where} has the number {said['n']} where {number} was expected: lines are missing")
                number = said["n"]
            cut = ""
        checked.first = checked.first or number
        checked.last, previous = number, hash_of(line)
        checked.last_hash = previous
    if cut:
        checked.notes.append(f"{cut} was cut by a crash, or is being written")
    return checked


def _lines(files: list[Path]) -> Iterator[tuple[str, bytes, bool]]:
    """Where each line is, the line without its end, and whether it has an end."""
    for path in files:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                yield f"{path.name} line {number}", line.removesuffix(b"\n"), line.endswith(b"\n")


def _add(checked: Checked, problem: str) -> None:
    if len(checked.problems) < _MOST:
        checked.problems.append(problem)

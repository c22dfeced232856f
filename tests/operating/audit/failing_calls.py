"""An audit log to which lines are appended while calls to the disk fail (`injecting.py`)."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

from apiserver.operating.audit.checking import check
from apiserver.operating.audit.entries import Entry
from apiserver.operating.audit.files import AuditFiles
from apiserver.operating.audit.reading import Wanted, read
from tests.robustness.injecting import main

_LINES = 20


@dataclass
class Attempt:
    """A log in one folder, and the lines that it must have."""

    folder: Path
    acknowledged: int = 0
    written: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.log = AuditFiles(self.folder / "audit", sync=True, full=1500)  # several files

    async def fill(self) -> None:
        for n in range(_LINES):
            self._append(f"{n}")

    def _append(self, name: str) -> bool:
        try:
            self.log.append([Entry("tasks.delete", name=name), Entry("tasks.delete", name=f"{name} too")])
        except OSError:
            return False
        self.acknowledged += 1
        self.written += [name, f"{name} too"]
        return True

    async def check(self) -> None:
        assert self._append("afterwards")
        checked = check(self.folder / "audit")
        assert checked.well, checked.problems
        found = [line["name"] for line in read(self.folder / "audit", Wanted())][::-1]
        assert sorted(set(self.written) - set(found)) == []
        assert [name for name in found if name in self.written] == self.written


if __name__ == "__main__":
    main(Attempt, sys.argv[1:])

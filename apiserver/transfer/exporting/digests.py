"""Digests of the files of an export, by which a later export finds missing and damaged files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import file_digest
from pathlib import Path

#: By the name of a file below the folder of the export, its digest; None if it could not be exported.
Digests = Mapping[str, str | None]


@dataclass(slots=True)
class Files:
    """The files below a folder, each of which is read once, as several tasks may name the same."""

    folder: Path
    _read: dict[str, str | None] = field(default_factory=dict)

    def digest(self, name: str) -> str | None:
        """The SHA-256 of a file; None if there is none that can be read."""
        if name not in self._read:
            try:
                with (self.folder / name).open("rb") as file:
                    self._read[name] = file_digest(file, "sha256").hexdigest()
            except OSError:
                self._read[name] = None
        return self._read[name]

    def read_again(self, name: str) -> str | None:
        """The digest of a file that was written just now."""
        self._read.pop(name, None)
        return self.digest(name)

    def wrong(self, digests: Digests) -> list[str]:
        """The files that differ from their digests, and the files that could not be exported."""
        return [name for name, digest in digests.items() if digest is None or self.digest(name) != digest]

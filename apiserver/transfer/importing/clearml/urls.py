"""Replaces addresses of files that have moved: `--replace-url OLD=NEW`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

#: The characters that may follow a replaced beginning: so http://host:80 does not replace the beginning of http://host:8081/file.
_END = r"(?=[/\\?#\"'\s)\]<>]|$)"


class Replacements:
    """Beginnings of addresses, each with its replacement; if several match, the longest is replaced."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self.pairs = tuple(sorted((old.rstrip("/"), new.rstrip("/")) for old, new in pairs))
        self._new = dict(self.pairs)
        longest_first = sorted((re.escape(old) for old in self._new), key=len, reverse=True)
        self._old = re.compile(f"(?:{'|'.join(longest_first)}){_END}") if self.pairs else None

    def in_text(self, text: str) -> str:
        """The text, or address, with the beginnings of all addresses in it replaced."""
        return text if self._old is None else self._old.sub(lambda found: self._new[found[0]], text)


def replacements(said: Sequence[str]) -> Replacements:
    """The replacements on the command line, each as OLD=NEW. ValueError if one is not such a pair of addresses."""
    pairs = []
    for one in said:
        old, equals, new = one.partition("=")
        if not equals or "://" not in old or "://" not in new:
            raise ValueError(f"'{one}' is not OLD=NEW with two beginnings of addresses such as http://old-host:8081")
        pairs.append((old, new))
    return Replacements(pairs)

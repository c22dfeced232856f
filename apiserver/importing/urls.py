"""Addresses of files that are elsewhere now: `--replace-url OLD=NEW`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

#: What may follow the beginning of an address that is replaced: so http://host:80 is none of http://host:8081/file.
_END = r"(?=[/\\?#\"'\s)\]<>]|$)"


class Replacements:
    """Beginnings of addresses, each with what takes its place; the longest that fits is replaced."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self.pairs = tuple(sorted((old.rstrip("/"), new.rstrip("/")) for old, new in pairs))
        self._new = dict(self.pairs)
        longest_first = sorted((re.escape(old) for old in self._new), key=len, reverse=True)
        self._old = re.compile(f"(?:{'|'.join(longest_first)}){_END}") if self.pairs else None

    def in_text(self, text: str) -> str:
        """The text with every address in it replaced; an address alone is such a text."""
        return text if self._old is None else self._old.sub(lambda found: self._new[found[0]], text)


def replacements(said: Sequence[str]) -> Replacements:
    """Those that the command line names, each as OLD=NEW. ValueError: one is no such pair of addresses."""
    pairs = []
    for one in said:
        old, equals, new = one.partition("=")
        if not equals or "://" not in old or "://" not in new:
            raise ValueError(f"'{one}' is not OLD=NEW, both beginnings of addresses such as http://old-host:8081")
        pairs.append((old, new))
    return Replacements(pairs)

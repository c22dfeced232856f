"""Regular expressions in filters. RE2 runs them in time linear in the text, so no pattern can hang the server.

A pattern that RE2 does not take is written otherwise where that can be done (`rewriting.py`). It is InvalidFilter if it
is too long, needs too much memory, or has what RE2 lacks (back-references, and look-around in the middle).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from apiserver.stores.documents.base import InvalidFilter
from apiserver.stores.documents.dialect.rewriting import Part, rewritten

LONGEST = 2048
_MEMORY = 4 * 2**20
_MOST_TEXTS = 4

#: Plain text, the beginnings and ends of texts, and any character.
_PIECE = re.compile(r"\\[^A-Za-z0-9]|[^\\.+*?()|\[\]{}^$\x00]|[.^$]")
_PIECES = re.compile(rf"(?:(?:{_PIECE.pattern})[+*?]?)*", re.DOTALL)
#: Look-around and back-references.
_LACKING = re.compile(r"\(\?<?[=!]|\(\?P=|\\[1-9]")
_HINT = (
    ". Patterns have no back-references here, and look-around only as (?=…) and (?!…) right behind ^, (?<=…) at the"
    " start and (?=…) at the end. Ask for more by a simpler pattern, and choose among the answers"
)
#: Lets `^` and `$` match at newlines.
_OF_LINES = "(?m)"
#: What may end that, or may match only at the ends of a text. Where it is plain text, nothing is lost.
_NOT_OF_LINES = re.compile(r"\\[AzZ]|\(\?[A-Za-z]*-")

Search = Callable[[str], bool]


def compile_pattern(field: str, pattern: str, *, any_case: bool = False) -> Search:
    """A function that says whether a text has the pattern in it, which the `field` must have."""
    if len(pattern) > LONGEST:
        raise InvalidFilter(f"field '{field}': the pattern is longer than {LONGEST} characters")
    try:
        return _compile(pattern, any_case)
    except ValueError as error:
        raise InvalidFilter(f"field '{field}': {error}") from None


def among_lines(pattern: str) -> Search | None:
    """A function that says whether texts joined by newlines may have one with the pattern in it; None: it cannot tell.

    `pattern` must be one that `compile_pattern` takes. `^` and `$` match at newlines here, so a joined text that does
    not match has no text that does. `\\A`, `\\z` and `\\Z` never match at newlines, and `(?-m)` ends what is done here.
    """
    if _NOT_OF_LINES.search(pattern) or len(pattern) > LONGEST - len(_OF_LINES):
        return None
    try:
        return compile_pattern("", _OF_LINES + pattern)
    except InvalidFilter:  # it needs a little more memory than the pattern
        return None


@lru_cache(maxsize=128)
def literals_of(pattern: str) -> tuple[str, ...]:
    """Texts that each match of the pattern must have in it, the longest first. None has NUL.

    For example, `^lr=0\\.1.*adam` gives "lr=0.1" and "adam". Other than simple patterns give none.
    """
    if _PIECES.fullmatch(pattern) is None:
        return ()
    runs = [""]
    for match in re.finditer(rf"({_PIECE.pattern})([+*?]?)", pattern, re.DOTALL):
        piece, times = match[1], match[2]
        plain = piece not in (".", "^", "$")
        if plain and times in ("", "+"):
            runs[-1] += piece[-1]
        if not plain or times:
            runs.append("")
    texts = sorted(filter(None, dict.fromkeys(runs)), key=len, reverse=True)
    return tuple(texts[:_MOST_TEXTS])


@lru_cache(maxsize=128)
def _compile(pattern: str, any_case: bool) -> Search:
    try:
        return _of_re2(pattern, any_case)
    except ValueError as refusal:
        parts = rewritten(pattern)
        if parts is None or parts == [Part(pattern, True)]:
            raise
        try:
            searches = [(_of_re2(part.pattern, any_case), part.wanted) for part in parts]
        except ValueError:
            raise refusal from None
        return lambda text: all(search(text) is wanted for search, wanted in searches)


def _of_re2(pattern: str, any_case: bool) -> Search:
    import re2

    options: Any = re2.Options()
    options.case_sensitive = not any_case
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        search = re2.compile(pattern, options).search
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        hint = _HINT if _LACKING.search(pattern) else ""
        raise ValueError(f"not a pattern that can be searched for ({text}){hint}") from None
    except UnicodeEncodeError:
        raise ValueError("the pattern is not valid Unicode") from None
    return lambda text: search(text) is not None

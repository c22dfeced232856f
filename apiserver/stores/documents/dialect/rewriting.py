r"""Writes patterns of Python's `re` in RE2's syntax, where it asks only whether a text has the pattern in it.

RE2 has no look-around, no `(?x)`, no comments and no `\Z`. These are written otherwise:

    ^(?!test)(?=.*run).*    →  a text has "^.*" and "^(?:.*run)" in it, and not "^(?:test)"
    (?<=a)b(?=c)            →  (?:a)b(?:c)
    (?x) ^a  b \Z  # names  →  ^ab\z

All else that RE2 lacks, such as back-references and look-around in the middle, cannot be written in it.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import NamedTuple

#: An escape, a set of characters, a comment, what begins a group, or any character.
_TOKEN = r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?#[^)]*\)|\((?:\?(?:<?[=!]|:))?|."
_TOKENS = re.compile(_TOKEN, re.DOTALL)
#: The same of a pattern with `(?x)`, in which `#` begins a comment.
_VERBOSE_TOKENS = re.compile(rf"#[^\n]*|{_TOKEN}", re.DOTALL)
_BLANKS = frozenset(" \t\n\r\v\f")
_FLAGS = re.compile(r"\(\?([imsux]+)\)")
_REPEATED = frozenset("*+?{")


class Part(NamedTuple):
    """A pattern of RE2 that a text must have, or must not have."""

    pattern: str
    wanted: bool


def rewritten(pattern: str) -> list[Part] | None:
    """Patterns that a text meets just if it has this one in it; None if that cannot be said.

    A part may be no pattern of RE2. Then this one cannot be said either.
    """
    found = _FLAGS.match(pattern)
    flags = set(found[1]) if found else set()
    tokens = _tokens(pattern[found.end() :] if found else pattern, verbose="x" in flags)
    if r"\Q" in tokens:
        return None
    kept = "".join(sorted(flags & set("ims")))
    start, parts = f"(?{kept})" if kept else "", []
    if tokens[:1] in (["^"], [r"\A"]):
        start += tokens.pop(0)
        while tokens[:1] in (["(?="], ["(?!"]):
            end = next((place for place, depth in enumerate(_depths(tokens), 1) if not depth), 0)
            if not end or "m" in flags or _REPEATED & set(tokens[end : end + 1]):
                return None
            parts.append(Part(f"{start}(?:{''.join(tokens[1:end])}", tokens[0] == "(?="))
            tokens = tokens[end:]
        if parts and ("|", 0) in zip(tokens, _depths(tokens), strict=True):
            return None
    elif tokens[:1] == ["(?<="]:
        tokens[0] = "(?:"
    if tokens[-1:] == [")"]:
        last = max(
            (place for place, depth in enumerate(_depths(tokens)) if depth == 1 and tokens[place][0] == "("), default=0
        )
        tokens[last] = "(?:" if tokens[last] == "(?=" else tokens[last]
    return [Part(start + "".join(tokens), True), *parts]


def _tokens(pattern: str, *, verbose: bool) -> list[str]:
    """The pattern without comments, and with `verbose` without blanks."""
    found = (_VERBOSE_TOKENS if verbose else _TOKENS).findall(pattern)
    kept = (token for token in found if not token.startswith("(?#"))
    if verbose:
        kept = (token for token in kept if token not in _BLANKS and token[0] != "#")
    return [r"\z" if token == r"\Z" else token for token in kept]


def _depths(tokens: list[str]) -> list[int]:
    """In how many groups each place behind a token lies."""
    return list(accumulate((token[0] == "(") - (token == ")") for token in tokens))

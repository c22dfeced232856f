"""Reads the YAML that MLflow writes into `meta.yaml`: one level of names with texts, numbers, or nothing.

A text may be plain, in single quotes ('' stands for one), or in double quotes with escapes. A long one goes on in the
next lines, which are indented.
"""

from __future__ import annotations

import json
import re

_BLANK = " \t"
_ENTRY = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*):(?:[ \t]+(.*))?$")
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|U([0-9A-Fa-f]{8})|(.))")
_NAMED = {
    "a": "\a",
    "e": "\x1b",
    "0": "\0",
    "v": "\v",
    " ": " ",
    "N": "\x85",
    "_": "\xa0",
    "L": "\u2028",
    "P": "\u2029",
}


def flat_yaml(text: str) -> dict[str, str]:
    """The entries; "" stands for nothing. Raises ValueError."""
    entries: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.split("\n"):
        if found := _ENTRY.match(line):
            lines = entries[found[1]] = [found[2] or ""]
        else:
            lines.append(line.strip(_BLANK))
    return {name: _value(lines) for name, lines in entries.items()}


def _value(lines: list[str]) -> str:
    first = lines[0].strip(_BLANK)
    if first.startswith('"'):
        return _double_quoted(_folded([first, *lines[1:]], breaks="\\"))
    text = _folded([first, *lines[1:]]).strip(_BLANK)
    if text.startswith("'"):
        if len(text) < 2 or not text.endswith("'"):
            raise ValueError("a text in quotes has no end")
        return text[1:-1].replace("''", "'")
    return "" if text in ("null", "~") else text


def _folded(lines: list[str], breaks: str = "") -> str:
    """The lines as one: a line break is a space, an empty line a line break. Behind `breaks`, it is nothing."""
    made, empty = lines[0], 0
    for line in lines[1:]:
        if not line:
            empty += 1
        elif breaks and made.endswith(breaks):
            made = made[: -len(breaks)] + line
        else:
            made, empty = made + ("\n" * empty or " ") + line, 0
    return made


def _double_quoted(text: str) -> str:
    def plain(found: re.Match[str]) -> str:
        if code := found[1] or found[2]:
            return json.dumps(chr(int(code, 16)))[1:-1]
        return json.dumps(_NAMED[found[3]])[1:-1] if found[3] in _NAMED else found[0]

    try:
        return str(json.loads(_ESCAPE.sub(plain, text).replace("\n", "\\n")))
    except (json.JSONDecodeError, OverflowError, ValueError) as error:
        raise ValueError(f"a text cannot be read: {error}") from None

"""Converts keys of ClearML's stored documents to the names that users wrote, and back.

ClearML's server writes "%%" for "%", "%2E" for ".", "%24" for "$", "%_%_" for "__" and, at the beginning, "%_" for "_".
"""

from __future__ import annotations

import re

_ESCAPED = re.compile(r"%%|%2E|%24|%_%_|^%_")
_PLAIN = {"%%": "%", "%2E": ".", "%24": "$", "%_%_": "__", "%_": "_"}


def unescape(key: str) -> str:
    """The name that is stored under `key`."""
    return _ESCAPED.sub(lambda found: _PLAIN[found[0]], key) if "%" in key else key


def escape(name: str) -> str:
    """The key that a name is stored under."""
    key = name.strip().replace("%", "%%").replace(".", "%2E").replace("$", "%24").replace("__", "%_%_")
    return f"%_{key[1:]}" if key.startswith("_") else key


def unescape_if_escaped(key: str) -> str:
    """The name, where some keys are escaped and others are not: "a%2Eb" is "a.b", but "50%" is "50%".

    A key that no name would be escaped to is the name itself.
    """
    name = unescape(key)
    return name if escape(name) == key else key

"""Names that users choose, escaped to be keys of stored documents.

The document stores do not allow "." or "$" in a key, but users may give hyperparameters, configurations and runtime
entries any name. `escape` turns any text into an allowed key (`lr.max` → `lr%2Emax`); `unescape` turns it back.
"""

from __future__ import annotations

import re
from typing import Any

_UNSAFE = re.compile(r"[%.$\0]")
_ESCAPED = re.compile(r"%(25|2E|24|00)")
#: The key of the empty name. No other key is a lone percent sign, because every escape has two digits.
_EMPTY = "%"


def escape(name: str) -> str:
    """`name` as a key of a stored document."""
    if not name:
        return _EMPTY
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", name)


def unescape(key: str) -> str:
    """The name that was stored under `key`."""
    if "%" not in key:
        return key
    return "" if key == _EMPTY else _ESCAPED.sub(lambda match: chr(int(match[1], 16)), key)


def escape_keys(value: Any) -> Any:
    """A copy of a JSON value with the keys of all its objects escaped."""
    if isinstance(value, dict):
        return {escape(key): escape_keys(item) for key, item in value.items()}
    return [escape_keys(item) for item in value] if isinstance(value, list) else value


def unescape_keys(value: Any) -> Any:
    """A copy of a stored JSON value with the keys of all its objects as their users wrote them."""
    if isinstance(value, dict):
        return {unescape(key): unescape_keys(item) for key, item in value.items()}
    return [unescape_keys(item) for item in value] if isinstance(value, list) else value


def escape_path(path: str) -> str:
    """The path in stored documents for a dotted path from a request.

    Its dots separate names, so clients themselves write a dot inside a name as `%2E`. Only "$" and NUL, which no stored
    key may have, are escaped here.
    """
    return path.replace("$", "%24").replace("\0", "%00")

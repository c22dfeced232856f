"""Names that come from users, as keys of stored documents.

Documents may not have keys with "." or a "$", but hyperparameters, configurations and runtime entries are named by
users. `escape` maps any text to a key that is safe; `unescape` maps it back, so that a round trip changes nothing.
"""

from __future__ import annotations

import re
from typing import Any

_UNSAFE = re.compile(r"[%.$\0]")
_ESCAPED = re.compile(r"%(25|2E|24|00)")
#: Escapes always have two digits, so a lone percent sign is free to stand for the empty name.
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
    """A dotted path from a request as a path in stored documents.

    Its dots separate, so clients write a dot inside a name as `%2E`; only what no stored key may hold is escaped.
    """
    return path.replace("$", "%24").replace("\0", "%00")

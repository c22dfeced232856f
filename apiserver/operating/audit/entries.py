"""The lines of the audit log, and the entries that they are made of.

For example, alice deletes a task by an access key (shown here on several lines, and with a shorter hash):

    {"n": 17, "time": "2026-11-24T15:02:11.104225+00:00", "action": "tasks.delete", "code": 200, "company": "d1e5…",
     "user": "5f0c…", "name": "alice", "key": "1B2C…", "address": "192.0.2.7", "what": {"task": "77aa…"}, "times": 1,
     "previous": "9c1f…"}

Names and ids come from clients, who may be anybody. So a line is ASCII alone, with everything else escaped, and each
text and list in it is cut: a text also by its size as it is written, because "é" is written as six bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from apiserver.common.times import utc_now

#: Most characters of a text, most items of a list, and most fields of what was acted on, that a line shows.
_LONGEST, _MOST, _MOST_FIELDS = 200, 20, 80
#: Most bytes of a text as it is written.
_MOST_BYTES = 400
#: Larger numbers are cut like texts.
_LARGEST = 2**64
#: The first line has this in place of the hash of the line before.
NOTHING = "0" * 64


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that was done, or was refused."""

    action: str
    """The endpoint, or another name of the server's own, such as `server.start`."""
    code: int = 200
    """The status of the answer."""
    company: str = ""
    user: str = ""
    """The id of the user; "" if nobody is known."""
    name: str = ""
    """Their name; of whom somebody tried to be, if that failed."""
    key: str = ""
    """The access key, or `password`, `provider` or `proxy`, if the caller or their token used one."""
    address: str = ""
    what: Mapping[str, Any] = field(default_factory=dict)
    """The ids and names of the objects of the action: texts, numbers, flags, and lists of these."""
    times: int = 1
    """How often it happened until `time`, since the last line with the same content."""
    time: str = field(default_factory=utc_now)

    def repeated(self, times: int) -> Entry:
        """An entry that says that this one happened `times` more times until now."""
        return replace(self, times=times, time=utc_now())


def line_of(entry: Entry, number: int, previous: str) -> bytes:
    """The line without its end. `previous` is the hash of the line before."""
    said = {
        "n": number,
        "time": entry.time,
        "action": entry.action,
        "code": entry.code,
        "company": _cut(entry.company),
        "user": _cut(entry.user),
        "name": _cut(entry.name),
        "key": _cut(entry.key),
        "address": _cut(entry.address),
        "what": {name: _bounded(value) for name, value in list(entry.what.items())[:_MOST_FIELDS]},
        "times": entry.times,
        "previous": previous,
    }
    return json.dumps(said, ensure_ascii=True, separators=(",", ":")).encode()


def hash_of(line: bytes) -> str:
    """The hash of a line without its end."""
    return hashlib.sha256(line).hexdigest()


def parsed(line: bytes) -> dict[str, Any] | None:
    """The fields of a line; None if it is no line of the audit log."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) and isinstance(said.get("n"), int) else None


def _bounded(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        shown = [_bounded(item) for item in value[:_MOST] if not isinstance(item, (list, tuple))]
        return shown if len(value) <= _MOST else [*shown, f"and {len(value) - _MOST} more"]
    if isinstance(value, (float, type(None))) or (isinstance(value, int) and abs(value) <= _LARGEST):
        return value
    return _cut(str(value))


def _cut(text: str) -> str:
    shown = text[:_LONGEST]
    if len(json.dumps(shown)) > _MOST_BYTES:
        sizes = accumulate(len(json.dumps(character)) - 2 for character in shown)
        shown = shown[: sum(size <= _MOST_BYTES for size in sizes)]
    return text if len(shown) == len(text) else f"{shown}…"

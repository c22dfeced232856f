"""Text of others in terminals and logs: whatever is in it, only characters that are shown get there.

Users choose names, and whoever can write to a destination of backups chooses what lies there.
"""

from __future__ import annotations


def shown(text: str, *, longest: int = 0) -> str:
    """The text with everything escaped that is not printed as it is, and shortened to `longest` characters (0: whole).

    For example, a line feed becomes the two characters \\n.
    """
    if longest and len(text) > longest:
        text = f"{text[: longest - 1]}…"
    return "".join([one if one.isprintable() else one.encode("unicode_escape").decode() for one in text])

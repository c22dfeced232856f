"""A log as the text that was printed: each line's message, ended by a line feed, in UTF-8."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from apiserver.events.model import Int64Array

_LINE_FEED = "\n"


def text_of(messages: Iterable[str]) -> bytes:
    """The messages as text."""
    return "".join([message if message.endswith(_LINE_FEED) else f"{message}\n" for message in messages]).encode()


def sizes_of(messages: Sequence[str]) -> Int64Array:
    """How many bytes of the text each message is."""
    sizes = (
        (len(message) if message.isascii() else len(message.encode())) + (not message.endswith(_LINE_FEED))
        for message in messages
    )
    return np.fromiter(sizes, np.int64, len(messages))

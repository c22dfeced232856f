"""Shares what was found of an owner's blocks among those who ask for the same within a second.

A search takes a node some milliseconds, and often finds nothing new. So what was found is answered again for a second,
unless this server wrote events of the owner since then, deleted some, or was told of changes. An example:

    0.0 s    a reader asks                      the node is asked; it may not see yet what others wrote just now
    0.2 s    another one asks for the same      the node is asked, and shows all that was written up to now
    0.4 s    another one                        gets what was found at 0.2 s
    0.5 s    this server writes for the owner
    0.6 s    another one                        the node is asked

So a server sees at once what it wrote itself, and within a second what others wrote.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from apiserver.events.model import Owner
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.blocks.blocks import Found
from apiserver.stores.events.blocks.finding import Key, key_of, size_of
from apiserver.stores.events.bounded import Bounded
from apiserver.stores.events.elasticsearch.bounds import BOUNDS

#: What is remembered: searches, names in them, and blocks that they found, about half a kilobyte each.
_REMEMBERED = 10_000


class _Look(NamedTuple):
    """A search that began at a time (monotonic)."""

    began: float
    found: Found | None
    """None: what others wrote just before may be missing."""


class Looks:
    """The last searches of this server."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, shared: float = BOUNDS.shared) -> None:
        """What was found is answered for `shared` seconds."""
        self._clock = clock
        self._shared = shared
        self._looks: Bounded[tuple[Key, int], _Look] = Bounded(_REMEMBERED, _size)
        """By what was asked for, and from which place on."""
        self._changed: OrderedDict[Owner | str, float] = OrderedDict()
        """When owners, or indices as a whole, were changed last, in the order of these times."""

    def changed(self, some: Iterable[Owner | str]) -> None:
        """Note that there may be more now of these owners, or of all owners in these indices."""
        now = self._clock()
        for one in some:
            self._changed[one] = now
            self._changed.move_to_end(one)
        while self._changed and next(iter(self._changed.values())) < now - self._shared:
            self._changed.popitem(last=False)

    async def find(
        self, series: SeriesQuery, place: int, index: str, search: Callable[[bool], Awaitable[Found]]
    ) -> Found:
        """What `search` finds in an index, or found just now. It is told whether to see what others wrote just now."""
        began, key = self._clock(), (key_of(series), place)
        known = self._looks.get(key)
        changed = max(self._changed.get(one, -self._shared) for one in (series.owner, index))
        is_asked_again = known is not None and known.began > max(changed, began - self._shared)
        if known is not None and is_asked_again and known.found is not None:
            return known.found
        found = await search(is_asked_again)
        self._looks.put(key, _Look(began, found if is_asked_again else None))
        return found


def _size(key: tuple[Key, int], look: _Look) -> int:
    return size_of(key[0]) + (0 if look.found is None else len(look.found.blocks))

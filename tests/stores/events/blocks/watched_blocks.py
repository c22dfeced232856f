"""A block store of plain lists that notes what is asked of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from apiserver.events.queries import EVERYWHERE, Range, SeriesQuery
from apiserver.stores.events.blocks.blocks import Block, Columns, Found
from tests.stores.events.blocks.plain_blocks import PlainBlocks


class WatchedBlocks(PlainBlocks):
    def __init__(self) -> None:
        super().__init__()
        self.searches = 0
        self.found: list[Found] = []
        """What was found by each request."""
        self.fetches: list[list[tuple[Block, Sequence[str]]]] = []
        """What each request fetched."""
        self.before_fetch: Callable[[], Awaitable[object]] | None = None
        """Done once, before columns are fetched next."""

    def forget(self) -> None:
        self.searches = 0
        self.found.clear()
        self.fetches.clear()

    @property
    def fetched(self) -> list[tuple[Block, Sequence[str]]]:
        """What all requests fetched."""
        return [one for some in self.fetches for one in some]

    @property
    def columns(self) -> set[str]:
        """The columns that were fetched."""
        return {name for _, names in self.fetched for name in names}

    async def find(self, series: SeriesQuery, range: Range = EVERYWHERE, place: int = 0) -> Found:
        self.searches += 1
        found = await super().find(series, range, place)
        self.found.append(found)
        return found

    async def find_of_each(self, queries: Sequence[SeriesQuery]) -> list[Found]:
        before = self.searches
        found = await super().find_of_each(queries)
        self.searches = before + 1
        return found

    async def fetch(self, wanted: Sequence[tuple[Block, Sequence[str]]]) -> list[Columns]:
        before, self.before_fetch = self.before_fetch, None
        if before is not None:
            await before()
        self.fetches.append(list(wanted))
        return await super().fetch(wanted)

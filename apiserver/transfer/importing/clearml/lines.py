"""Finds the log lines that the target does not have yet.

A log line has no id. So the lines of source and target are compared, in the order of their times. The target ends up
with as many equal lines of one time as the source has. For example, at one time:

    source: a a b    target: a    missing: a b

Lines that differ only in extra fields count as equal.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator

from apiserver.events.model import EventType, LogColumns, LogPosition, Owner
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.protocols.logs import LogStore
from apiserver.stores.events.sizes import may_go_on
from apiserver.transfer.copying.retrying import Say, patiently

#: Lines of a page.
PAGE = 10_000

_Line = tuple[int, str | None, str, str, int | None, str, str]


class LinesThere:
    """The lines of one owner in the target. They are read as far as the source's lines are compared with them."""

    def __init__(self, target: LogStore, owner: Owner, say: Say, page: int = PAGE) -> None:
        """`page`: how many lines of the target are read at once."""
        self._page = page
        self._target = target
        self._series = SeriesQuery(owner, EventType.LOG)
        self._say = say
        self._unmatched: Counter[_Line] = Counter()
        self._after: LogPosition | None = None
        self._ended = False

    async def missing(self, columns: LogColumns) -> LogColumns | None:
        """The lines that the target does not have; None if it has all of them. The calls go up in time."""
        last = int(columns.timestamps[-1])
        await self._read_to(last)
        missing = []
        for n, line in enumerate(_rows(columns)):
            if self._unmatched[line] > 0:
                self._unmatched[line] -= 1
            else:
                missing.append(n)
        # The source has no more lines of earlier times.
        self._unmatched = Counter({line: n for line, n in self._unmatched.items() if n > 0 and line[0] >= last})
        return _chosen(columns, missing) if missing else None

    async def _read_to(self, timestamp: int) -> None:
        while not self._ended and (self._after is None or self._after.timestamp <= timestamp):
            page = await patiently(self._say, self._target.log_lines, self._series, PageQuery(self._page, self._after))
            self._ended = not may_go_on(page, self._page)
            self._unmatched.update(
                (one.position.timestamp, one.level, one.worker, one.message, one.iter, one.metric, one.variant)
                for one in page
            )
            if page:
                self._after = page[-1].position


def _rows(columns: LogColumns) -> Iterator[_Line]:
    return zip(
        columns.timestamps.tolist(),
        columns.levels,
        columns.workers,
        columns.messages,
        columns.iters,
        columns.metrics,
        columns.variants,
        strict=True,
    )


def _chosen(columns: LogColumns, rows: list[int]) -> LogColumns:
    """Some of the lines, with a digest of their own."""
    digest = hashlib.blake2b(repr((columns.digest, rows)).encode(), digest_size=16)
    return LogColumns(
        owner=columns.owner,
        timestamps=columns.timestamps[rows],
        levels=[columns.levels[n] for n in rows],
        workers=[columns.workers[n] for n in rows],
        messages=[columns.messages[n] for n in rows],
        iters=[columns.iters[n] for n in rows],
        metrics=[columns.metrics[n] for n in rows],
        variants=[columns.variants[n] for n in rows],
        digest=digest.digest(),
        extras={n: columns.extras[row] for n, row in enumerate(rows) if row in columns.extras},
    )

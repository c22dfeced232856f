"""Log lines of which the target has some already: which of them are missing there.

A line has no name of its own. So lines of the source are compared with those of the target, time by time; of equal
lines at the same time there are as many in the end as in the source. Lines that differ in nothing but fields of their
own count as equal, and so do one without a level and one whose level is empty: an older version may have stored it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator

from apiserver.copying.copied import Say, patiently
from apiserver.events.model import LogColumns, LogPosition, Owner
from apiserver.stores.events.base import EventStore

_LINES = 10_000

_Line = tuple[int, str, str, str, int | None, str, str]


class LinesThere:
    """The lines of one owner in the target, to be compared with those of the source in the order of their times."""

    def __init__(self, target: EventStore, owner: Owner, say: Say) -> None:
        self._target = target
        self._owner = owner
        self._say = say
        self._unmatched: Counter[_Line] = Counter()
        self._after: LogPosition | None = None
        self._ended = False

    async def missing(self, columns: LogColumns) -> LogColumns | None:
        """Those of the lines that the target has not; None: it has all."""
        await self._read_to(int(columns.timestamps[-1]))
        fresh = [n for n, line in enumerate(_rows(columns)) if not self._match(line)]
        self._forget_before(int(columns.timestamps[-1]))
        return _chosen(columns, fresh) if fresh else None

    def _match(self, line: _Line) -> bool:
        if self._unmatched[line] <= 0:
            return False
        self._unmatched[line] -= 1
        return True

    async def _read_to(self, timestamp: int) -> None:
        while not self._ended and (self._after is None or self._after.timestamp <= timestamp):
            page = await patiently(self._say, self._target.log_lines, self._owner, after=self._after, limit=_LINES)
            self._ended = len(page) < _LINES
            self._unmatched.update(
                (one.position.timestamp, one.level or "", one.worker, one.message, one.iter, one.metric, one.variant)
                for one in page
            )
            if page:
                self._after = page[-1].position

    def _forget_before(self, timestamp: int) -> None:
        """The source has no more lines of before."""
        self._unmatched = Counter({line: n for line, n in self._unmatched.items() if n > 0 and line[0] >= timestamp})


def _rows(columns: LogColumns) -> Iterator[_Line]:
    return zip(
        columns.timestamps.tolist(),
        [level or "" for level in columns.levels],
        columns.workers,
        columns.messages,
        columns.iters,
        columns.metrics,
        columns.variants,
        strict=True,
    )


def _chosen(columns: LogColumns, rows: list[int]) -> LogColumns:
    """These of the lines, under a digest of their own."""
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

"""How much a folder keeps of each owner: merged data by what SQLite knows of its rows, the rest from memtables.

SQLite tells the size of a value without reading it. So the columns of points, lines and samples are not read, and this
takes little more than a look at the rows of 4,096 to 16,384 points each. Bytes are those of rows and their values,
without the pages around them, and without indexes.
"""

from __future__ import annotations

import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from apiserver.events.model import EventType, Int64Array, Owner
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.embedded import tail
from apiserver.stores.events.embedded.bounds import EmbeddedBounds
from apiserver.stores.events.embedded.hot import HotOwner, Memtable
from apiserver.stores.events.embedded.names import CODES, TYPES, owner_id
from apiserver.stores.events.usage import Usage, too_long

#: Bytes of a row beside its values, about, and of a point in the journal.
_ROW, _POINT = 16, 24
_ROWS_AT_ONCE = 8192
#: Seconds until a caller may ask again.
_AGAIN = 600
_SCALAR, _LOG = CODES[EventType.SCALAR], CODES[EventType.LOG]

_OF_SERIES = (
    f"SELECT owner, type, iif(type = {_LOG}, 0, count(*)), 0, sum(length(metric) + length(variant) + {_ROW})"
    " FROM series GROUP BY 1, 2"
)
_OF_CHUNKS = (
    f"SELECT owner, {_SCALAR}, 0, sum(i.count), sum(length(i.stats) + length(blocks) + coalesce(length(c.body), 0)"
    f" + coalesce(length(d.body), 0) + {3 * _ROW}) FROM series AS s CROSS JOIN chunk_index AS i ON i.series = s.id"
    " LEFT JOIN chunk_curves AS c ON c.id = i.id LEFT JOIN chunk_details AS d ON d.id = i.id"
    f" WHERE s.type = {_SCALAR} GROUP BY 1"
)
_OF_BLOCKS = (
    f"SELECT owner, {_LOG}, 0, sum(count), sum(length(body) + length(names) + length(sizes) + {2 * _ROW})"
    " FROM log_blocks GROUP BY 1"
)
_OF_DIGESTS = f"SELECT owner, {_LOG}, 0, 0, sum(length(digest) + {_ROW}) FROM log_digests GROUP BY 1"
_OF_SAMPLES = (
    f"SELECT owner, type, 0, count(*), sum(length(key) + coalesce(length(body), 0) + {2 * _ROW}) FROM series AS s"
    " CROSS JOIN samples AS p ON p.series = s.id LEFT JOIN sample_documents AS d ON d.id = p.document"
    f" WHERE s.type NOT IN ({_SCALAR}, {_LOG}) GROUP BY 1, 2"
)
_TAILS = (
    "SELECT owner, tail, length(stats) + length(runs), runs FROM series AS s"
    f" CROSS JOIN scalars AS c ON c.series = s.id WHERE s.type = {_SCALAR}"
)


def usage(conn: sqlite3.Connection, tables: Sequence[Memtable], company: str | None = None) -> Usage:
    """What is kept of each owner (of a company), as `conn` sees it, and the memtables whose events it does not see."""
    rows = conn.execute("SELECT id, company, name, is_model FROM owners ORDER BY id").fetchall()
    ids = np.array([id for id, of, *_ in rows if company in (None, of)], np.int64)
    owners = [Owner(of, name, bool(is_model)) for _, of, name, is_model in rows if company in (None, of)]
    hot = _of_owners(tables, company)
    in_database = set(owners)
    total = Usage.of([*owners, *(owner for owner in hot if owner not in in_database)])
    for query in (_OF_SERIES, _OF_CHUNKS, _OF_BLOCKS, _OF_DIGESTS, _OF_SAMPLES):
        _add(total, ids, conn.execute(query))
    _add_tails(total, ids, conn)
    _add_hot(total, conn, hot)
    return total


def usage_in_time(conn: sqlite3.Connection, tables: Sequence[Memtable], company: str, bounds: EmbeddedBounds) -> Usage:
    """The usage of a company; EventStoreBusy if it takes too long."""
    until = time.monotonic() + bounds.usage_seconds
    conn.set_progress_handler(lambda: time.monotonic() > until, bounds.usage_steps)
    try:
        return usage(conn, tables, company)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        raise EventStoreBusy(too_long(bounds.usage_seconds), retry_after=_AGAIN, overloaded=False) from None
    finally:
        conn.set_progress_handler(None, 0)


def _add(usage: Usage, ids: Int64Array, rows: Iterable[tuple[int, int, int, int, int]]) -> None:
    """Add rows of owner, type, series, events and bytes; those of other owners do not count."""
    table = np.array(list(rows), np.int64).reshape(-1, 5)
    which, places = _places(ids, table[:, 0])
    table = table[which]
    for numbers, column in zip((usage.series, usage.events, usage.bytes), table.T[2:], strict=True):
        np.add.at(numbers, (places, table[:, 1]), column)


def _places(ids: Int64Array, wanted: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Which of the wanted ids are there, and where these are among `ids`, which ascend."""
    at = np.searchsorted(ids, wanted)
    which = np.flatnonzero(np.append(ids, -1)[at] == wanted) if len(ids) else np.zeros(0, np.int64)
    return which, at[which]


def _add_tails(usage: Usage, ids: Int64Array, conn: sqlite3.Connection) -> None:
    """Add points in no chunk yet. A page counts for the owner of its runs, who is the same for all of them."""
    query = f"SELECT id, length(lengths) + length(curve) + length(details) + {_ROW} FROM tail_pages"
    pages = np.array(conn.execute(f"{query} ORDER BY id").fetchall(), np.int64).reshape(-1, 2).T.copy()
    owner_of = np.full(len(pages[0]), -1)
    for owners, points, bytes, runs in _in_parts(conn):
        which, places = _places(ids, owners)
        column = CODES[EventType.SCALAR]
        np.add.at(usage.events[:, column], places, points[which])
        np.add.at(usage.bytes[:, column], places, bytes[which] + _ROW)
        listed = tail.pages_of(runs)
        here, at = _places(pages[0], listed)
        owner_of[at] = np.repeat(owners, [len(one) // tail.LISTED_BYTES for one in runs])[here]
    which, places = _places(ids, owner_of)
    np.add.at(usage.bytes[:, CODES[EventType.SCALAR]], places, pages[1][which])


def _in_parts(conn: sqlite3.Connection) -> Iterator[tuple[Int64Array, Int64Array, Int64Array, list[bytes]]]:
    cursor = conn.execute(_TAILS)
    while rows := cursor.fetchmany(_ROWS_AT_ONCE):
        owners, points, bytes, runs = zip(*rows, strict=True)
        yield np.array(owners, np.int64), np.array(points, np.int64), np.array(bytes, np.int64), list(runs)


# --- what is not merged -----------------------------------------------------------------------------


class _Hot(NamedTuple):
    """Events of one type that are not merged."""

    names: set[Name]
    """Of its series; of a log there are none."""
    events: int
    bytes: int


def _of_owners(tables: Sequence[Memtable], company: str | None) -> dict[Owner, list[HotOwner]]:
    hot_by_owner: dict[Owner, list[HotOwner]] = defaultdict(list)
    for table in tables:
        for owner, hot in list(table.owners.items()):  # a copy, as the memtable may grow meanwhile
            if company in (None, owner.company):
                hot_by_owner[owner].append(hot)
    return hot_by_owner


def _add_hot(usage: Usage, conn: sqlite3.Connection, hot: dict[Owner, list[HotOwner]]) -> None:
    """Add what is not merged. A point or sample that will replace another one counts until then, too."""
    places = {owner: n for n, owner in enumerate(usage.owners) if owner in hot}
    for owner, place in places.items():
        names_in_database: dict[int, set[Name]] = defaultdict(set)
        query = "SELECT type, metric, variant FROM series WHERE owner = ?"
        for type, *name in conn.execute(query, (owner_id(conn, owner),)):
            names_in_database[type].add(tuple(name))
        names: dict[int, set[Name]] = defaultdict(set)
        for one in hot[owner]:
            for type, some in _of_each_type(one):
                usage.events[place, type] += some.events
                usage.bytes[place, type] += some.bytes
                names[type] |= some.names
        for type in names:
            usage.series[place, type] += len(names[type] - names_in_database[type])


def _of_each_type(hot: HotOwner) -> Iterator[tuple[int, _Hot]]:
    scalars = list(hot.scalars.items())
    points = sum([hot.columns.lengths[n] for _, series in scalars for n in list(series.numbers)])
    yield _SCALAR, _Hot({name for name, _ in scalars}, points, _POINT * points)
    parts = hot.logs.copy()
    messages = [part.columns.messages for part in parts]
    size = sum([len(message) + _ROW for some in messages for message in some])
    yield _LOG, _Hot(set(), sum(map(len, messages)), size)
    for type, series in list(hot.samples.items()):
        samples = [sample for some in list(series.values()) for sample in list(some.values())]
        yield TYPES.index(type), _Hot(set(series), len(samples), sum([len(one.document) + _ROW for one in samples]))

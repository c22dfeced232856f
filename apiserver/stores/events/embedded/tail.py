"""The tail: points in no chunk yet. A run has points of one series, and a page has runs of several series of an owner.

- The runs of a series are ascending and disjoint, and lie beyond its last chunk. Its row in `scalars` lists them in
  order, with eight bytes each: the page's id in the low 48 bits, and the run's place in the page in the others.
- A page never changes. It counts the runs that are still listed, and is deleted when there are none.
- Series with about as many points share pages, as they leave the tail at about the same time.

For example, two merges bring points of series a and b, and a third one brings an old point of a again:

    merge 1   page 7: run 0 of a, run 1 of b     a lists 7/0          b lists 7/1
    merge 2   page 8: run 0 of a, run 1 of b     a lists 7/0, 8/0     b lists 7/1, 8/1
    merge 3   page 9: run 0, all points of a     a lists 9/0          pages 7 and 8 have one listed run each, that of b
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from apiserver.events.model import Int64Array
from apiserver.stores.events.codec import chunks
from apiserver.stores.events.codec.checked import Damaged, Kind, Place, decoder, unwrap, wrap
from apiserver.stores.events.codec.points import NO_POINTS, Points, as_bytes, concat, spread, take
from apiserver.stores.events.embedded.bounds import BOUNDS, EmbeddedBounds

_LISTED = np.dtype("<u8")
#: Bytes of a run in the list of a series.
LISTED_BYTES = _LISTED.itemsize
_PLACE_BITS = 48
_PLACE_SHIFT, _PAGE_SHIFT = np.uint64(_PLACE_BITS), np.uint64(64 - _PLACE_BITS)
_PAGE = np.uint64(2**_PLACE_BITS - 1)
_LENGTH = np.dtype("<u2")

Lengths = npt.NDArray[np.int64]


def are_crowded(tails: Sequence[bytes], most: int) -> npt.NDArray[np.bool_]:
    """Whether each tail has as many runs as `most`, so that they should become one."""
    return np.fromiter(map(len, tails), np.int64, len(tails)) >= most * _LISTED.itemsize


def read(conn: sqlite3.Connection, runs: bytes) -> Points:
    """The points of one tail, whose runs are given as in its series' row."""
    return read_all(conn, [runs])[0]


def read_many(conn: sqlite3.Connection, tails: Sequence[bytes]) -> list[Points]:
    """The points of each tail, by one query."""
    points, lengths = read_all(conn, tails)
    edges = [0, *np.cumsum(lengths).tolist()]
    return [take(points, slice(start, stop)) for start, stop in pairwise(edges)]


def read_all(
    conn: sqlite3.Connection, tails: Sequence[bytes], set_aside: Callable[[int], None] | None = None
) -> tuple[Points, Lengths]:
    """The points of the tails, one tail after another, and how many each has; Damaged.

    With `set_aside`, runs of damaged pages have no points, and it is called with the id of each such page.
    """
    listed = np.frombuffer(b"".join(tails), _LISTED)
    if not len(listed):
        return NO_POINTS, np.zeros(len(tails), np.int64)
    order = np.argsort(_by_page(listed), kind="stable")
    ids, firsts = np.unique(listed[order] & _PAGE, return_index=True)
    places = np.split((listed[order] >> _PLACE_SHIFT).astype(np.int64), firsts[1:])
    query = (
        "SELECT id, lengths, curve, details FROM tail_pages WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
    )
    rows = conn.execute(query, (json.dumps(ids.tolist()),))
    # Pages are decoded one by one, and of each only the wanted runs are kept, so that memory is bounded.
    runs = []
    for place, (id, *row) in zip(places, rows, strict=True):
        try:
            runs.append(_runs(place, *decode_page(*row)))
        except Damaged:
            if set_aside is None:
                raise
            set_aside(id)
            runs.append((np.zeros(len(place), np.int64), NO_POINTS))
    length = np.empty(len(listed), np.int64)
    length[order] = np.concatenate([lengths for lengths, _ in runs])
    points = concat([points for _, points in runs])
    if bool((order[1:] < order[:-1]).any()):
        start = np.empty(len(listed), np.int64)
        start[order] = np.cumsum(length[order]) - length[order]
        points = take(points, spread(start, length))
    stops = np.append(0, np.cumsum(length))
    edges = np.cumsum([0, *(len(tail) // _LISTED.itemsize for tail in tails)])
    return points, np.diff(stops[edges])


def pages_of(tails: Sequence[bytes]) -> Int64Array:
    """The page of each run of the tails, one tail after another."""
    return (np.frombuffer(b"".join(tails), _LISTED) & _PAGE).astype(np.int64)


def without_page(tail: bytes, page: int) -> bytes:
    """The tail without its runs in a page."""
    listed = np.frombuffer(tail, _LISTED)
    left: bytes = listed[(listed & _PAGE) != page].tobytes()
    return left


def order(tails: Sequence[bytes]) -> Int64Array:
    """The numbers of the tails in the order of their last runs' pages, so that neighbours share pages."""
    last = b"".join([tail[-_LISTED.itemsize :] or bytes(_LISTED.itemsize) for tail in tails])
    return np.argsort(_by_page(np.frombuffer(last, _LISTED)), kind="stable")


def some_at_a_time(which: Int64Array, sizes: Int64Array, points: int) -> Iterator[Int64Array]:
    """The series in parts of about so many points; series n has sizes[n] points."""
    part = np.cumsum(sizes[which]) // points
    return iter(np.split(which, np.flatnonzero(np.diff(part)) + 1)) if len(which) else iter(())


def _by_page(listed: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The keys that sort runs by page and place."""
    key: npt.NDArray[np.uint64] = listed << _PAGE_SHIFT | listed >> _PLACE_SHIFT
    return key


def _runs(places: Int64Array, lengths: Lengths, points: Points) -> tuple[Lengths, Points]:
    """The runs of a page at these places, which are ascending."""
    if len(places) == len(lengths):
        return lengths, points
    starts = np.cumsum(lengths) - lengths
    return lengths[places], take(points, spread(starts[places], lengths[places]))


@decoder
def decode_page(lengths: bytes, curve: bytes, details: bytes) -> tuple[Lengths, Points]:
    """The lengths of a page's runs, and all points."""
    runs = np.frombuffer(unwrap(lengths), _LENGTH).astype(np.int64)
    return runs, chunks.decode_points(int(runs.sum()), curve, details)


class TailWriter:
    """Changes tails in one merge."""

    def __init__(self, conn: sqlite3.Connection, bounds: EmbeddedBounds = BOUNDS) -> None:
        self._conn = conn
        self._page_points = bounds.tail_page_points
        self._next_id = int(conn.execute("SELECT coalesce(max(id), 0) + 1 FROM tail_pages").fetchone()[0])
        self._removed: list[bytes] = []

    def put(self, owners: Int64Array, sizes: Int64Array, points: Points, lengths: Int64Array) -> list[bytes]:
        """Write a run for each series, and return what its row lists for it.

        `points` has the runs one after another, `lengths` says how long each is. `owners` has each series' owner,
        `sizes` says how many points its tail has, with this run.
        """
        order = np.lexsort((sizes, owners))
        if bool((order[1:] < order[:-1]).any()):
            points = take(points, spread((np.cumsum(lengths) - lengths)[order], lengths[order]))
        lengths = lengths[order]
        starts = np.cumsum(lengths) - lengths
        firsts = _first_runs(owners[order], starts, self._page_points)
        ids = np.arange(self._next_id, self._next_id + len(firsts))
        self._next_id += len(firsts)
        edges = zip(ids.tolist(), firsts.tolist(), [*firsts[1:].tolist(), len(lengths)], strict=True)
        self._conn.executemany(
            "INSERT INTO tail_pages (id, live, lengths, curve, details) VALUES (?, ?, ?, ?, ?)",
            (
                (id, stop - start, *_encoded(id, points, int(starts[start]), lengths[start:stop]))
                for id, start, stop in edges
            ),
        )
        runs = np.diff(np.append(firsts, len(lengths)))
        place = np.arange(len(lengths)) - np.repeat(firsts, runs)
        listed = np.empty(len(lengths), _LISTED)
        listed[order] = place << _PLACE_BITS | np.repeat(ids, runs)
        return as_bytes(listed)

    def remove(self, tails: Sequence[bytes]) -> None:
        """Note that the runs of these tails are no longer listed."""
        self._removed += tails

    def write(self) -> None:
        """Count down the listed runs of pages, and delete pages that have none."""
        pages, runs = np.unique(np.frombuffer(b"".join(self._removed), _LISTED) & _PAGE, return_counts=True)
        counted = zip(runs.tolist(), pages.tolist(), strict=True)
        self._conn.executemany("UPDATE tail_pages SET live = live - ? WHERE id = ?", counted)
        self._conn.executemany("DELETE FROM tail_pages WHERE id = ? AND live = 0", zip(pages.tolist()))
        self._removed.clear()


def _first_runs(owners: Int64Array, starts: Int64Array, points: int) -> npt.NDArray[np.intp]:
    """The first run of each page of about so many points. The runs are sorted by owner, and begin at `starts`."""
    of_owner = np.flatnonzero(np.append(True, owners[1:] != owners[:-1]))
    within = starts - np.repeat(starts[of_owner], np.diff(np.append(of_owner, len(owners))))
    page = within // points
    return np.flatnonzero(np.append(True, (owners[1:] != owners[:-1]) | (page[1:] != page[:-1])))


def _encoded(id: int, points: Points, start: int, lengths: Int64Array) -> tuple[bytes, bytes, bytes]:
    iters, values, *details = take(points, slice(start, start + int(lengths.sum())))
    place = Place(Kind.TAIL_PAGE, id)
    return (
        wrap(lengths.astype(_LENGTH).tobytes(), place),
        wrap(chunks.encode_curve(iters, values), place),
        wrap(chunks.encode_details(*details), place),
    )

"""Makes blocks of log lines, and lines of blocks.

A fragment has the first two of these columns, a chunk has all:

    lines     the lines (`stores/events/codec/lines.py`)
    about     how many lines each series has, and how much each worker logged
    batches   which fragments the lines came with (`log_batches.py`)

A line's position is its timestamp and its sequence. The sequence is the place of the fragment that the line came with,
and the line's number there. So a fragment has only the numbers, and a chunk has whole sequences. Lines that a copy
brought (`whole_lines.py`) have lower sequences, so they come first among lines of their timestamp.

On the *axis* of logs, where blocks begin and end, a position is one whole number. So lines of one timestamp may be in
several chunks. A block store knows the timestamps, and of a chunk also the sequences.

Beside its lines, an owner may have a *note*: a block without lines, which says by the name of its series whether lines
are being deleted (`log_deletion.py`). Other blocks without lines name bodies that a copy brought (`log_bodies.py`).
"""

from __future__ import annotations

import hashlib
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise, zip_longest

import msgspec
import numpy as np
import orjson

from apiserver.events.model import EventBatch, Int64Array, LogColumns, LogPosition, Owner
from apiserver.events.queries import Range
from apiserver.stores.events.blocks.blocks import NO_SERIES, Block, Columns, NewBlock, Statement
from apiserver.stores.events.blocks.bounds import ColumnarBounds
from apiserver.stores.events.blocks.log_batches import BATCH_ID, Batches, batch_of
from apiserver.stores.events.codec import lines as codec
from apiserver.stores.events.codec import worker_sizes
from apiserver.stores.events.codec.checked import Place, decoder, unwrap, wrap
from apiserver.stores.events.codec.lines import BODY_ID, Column, Lines, LogPart, Texts
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.codec.worker_sizes import Sizes

LINES, ABOUT, BATCHES = "lines", "about", "batches"
#: The series of blocks that name bodies of lines which a copy brought.
OF_BODIES: Name = ("bodies", "")

#: Lines so many milliseconds apart are in fragments of their own, if these gaps are among the longest of a body.
GAP, _GAPS = 3_600_000, 7

#: Bits of a sequence that are the number of the line in its fragment.
_NUMBER = 24
#: What is added to places in sequences, so that lines that a copy brought have lower ones.
_NEW = 2**37
#: Bits of a place on the axis that are the sequence.
_SEQUENCE = 64
_HASH = 12
_ID_OF_OWNER = _HASH * 4 // 3
#: The metric of notes, and the part of their ids that all owners' notes share.
NOTE, _ID_OF_NOTE = "deletion", b"deletion".ljust(BATCH_ID, b"\0")

_NOTHING = np.empty(0, np.int64)
_NONE = Column([None], _NOTHING)
NO_LINES = Lines(_NOTHING, _NOTHING, _NOTHING, _NONE, _NONE, [], _NONE, Column([], _NOTHING), _NONE)


# --- the axis --------------------------------------------------------------------------------------


def place_of(position: LogPosition) -> int:
    """Where a position is on the axis; its sequence is at least −1."""
    return (position.timestamp << _SEQUENCE) + position.sequence


def position_at(place: int) -> LogPosition:
    """The position at a place of the axis."""
    timestamp, sequence = divmod(place + 1, 1 << _SEQUENCE)
    return LogPosition(timestamp, sequence - 1)


def places_of(times: Range) -> Range:
    """All places of a range of timestamps."""
    return Range(place_of(LogPosition(times.least, -1)), place_of(LogPosition(times.greatest + 1, -1)) - 1)


def written_at(sequences: Int64Array) -> Int64Array:
    """The places of the fragments that lines came with, by their sequences; negative for lines that a copy brought."""
    return (sequences >> _NUMBER) - _NEW


def on_axis(block: Block) -> Block:
    """The block, which begins and ends at places of the axis, not at timestamps."""
    if not block.lasts:
        place = block.version.place + _NEW
        begin, end = place << _NUMBER, ((place + 1) << _NUMBER) - 1
    else:
        begin, end = block.begin, block.end
    first, last = (block.first << _SEQUENCE) + begin, (block.last << _SEQUENCE) + end
    return msgspec.structs.replace(block, first=first, last=last)


# --- blocks of lines -------------------------------------------------------------------------------


def fragments(batch: EventBatch, bounds: ColumnarBounds) -> list[list[NewBlock]]:
    """Fragments of a batch. Those of a list may be put in any order, but before those of the next list.

    So the order of an owner's fragments is that of its lines, however many fragments they need.
    """
    of_owners: dict[Owner, list[LogColumns]] = {}
    for columns in batch.logs:
        of_owners.setdefault(columns.owner, []).append(columns)
    made = [[*_fragments(owner, some, batch.received, bounds.fragment_bytes)] for owner, some in of_owners.items()]
    return [[block for block in some if block is not None] for some in zip_longest(*made)]


def _fragments(owner: Owner, some: Sequence[LogColumns], received: int, largest: int) -> Iterator[NewBlock]:
    """Fragments of an owner's lines. Parts of a body are numbered, and so known if they are sent again."""
    numbers: Counter[bytes] = Counter()
    for digest, of_body in groupby(some, key=lambda columns: columns.digest):
        first, parts = 0, []
        for columns in of_body:
            parts.append(LogPart(first, received, columns))
            first += len(columns.messages)
        body = os.urandom(BATCH_ID) if digest is None else digest
        together = [lines for apart in _apart(codec.of_parts(parts)) for lines in _in_parts(apart, largest)]
        for number, lines in enumerate(together, numbers[body]):
            yield _fragment(owner, batch_of(body, number, is_last=lines is together[-1]), lines)
        numbers[body] += len(together)


def _apart(lines: Lines) -> list[Lines]:
    """The lines, cut at the longest gaps between their times.

    So a line with an odd time makes no fragment that overlaps all chunks in between, which had to be read with it.
    """
    gaps = np.diff(lines.timestamps.astype(np.float64))
    if not (gaps > GAP).any():
        return [lines]
    longest = np.argsort(gaps)[-_GAPS:]
    cuts = np.sort(longest[gaps[longest] > GAP]) + 1
    return [lines.slice(*ends) for ends in pairwise([0, *cuts.tolist(), len(lines)])]


def _fragment(owner: Owner, batch: bytes, lines: Lines) -> NewBlock:
    lines.sequences = np.arange(len(lines))
    id, ends = _id(owner, batch), (int(lines.timestamps[0]), int(lines.timestamps[-1]))
    return NewBlock(owner, NO_SERIES, id, *ends, len(lines), columns_of(id, lines), size=lines.bytes, once=True)


def chunks_of(
    owner: Owner,
    ends: tuple[int, int],
    lines: Lines,
    batches: Batches,
    up_to: int,
    newest: int | None,
    bounds: ColumnarBounds,
) -> list[NewBlock]:
    """Chunks of like size with these lines. Together they cover all places from ends[0] to ends[1].

    `batches` has all fragments that lines came with. Lines that a copy brought came with none.
    """
    parts = _in_parts(lines, bounds.chunk_bytes)
    firsts = [ends[0], *(place_of(part.position(0)) for part in parts[1:])]
    lasts = [*(first - 1 for first in firsts[1:]), ends[1]]
    return [
        _chunk(owner, position_at(first), position_at(last), part, batches, Statement(up_to, newest, 0))
        for first, last, part in zip(firsts, lasts, parts, strict=True)
    ]


def _chunk(
    owner: Owner, first: LogPosition, last: LogPosition, lines: Lines, batches: Batches, statement: Statement
) -> NewBlock:
    id = _id(owner, os.urandom(BATCH_ID))
    of_lines = batches.between(first.timestamp, last.timestamp)
    return NewBlock(
        owner,
        NO_SERIES,
        id,
        first.timestamp,
        last.timestamp,
        len(lines),
        {**columns_of(id, lines), BATCHES: wrap(of_lines.encode(), Place.of(id))},
        statement,
        begin=first.sequence,
        end=last.sequence,
        size=lines.bytes + of_lines.size,
    )


def _in_parts(lines: Lines, most: int) -> list[Lines]:
    """Parts of like size in bytes, of up to `most` and a line; a part without lines if there are none."""
    sizes = np.cumsum(lines.sizes)
    total = int(sizes[-1]) if len(lines) else 0
    count = max(1, -(-total // most))
    inner = np.searchsorted(sizes, [total * number // count for number in range(1, count)])
    return [lines.slice(*ends) for ends in pairwise(sorted({0, len(lines), *inner.tolist()}))] or [lines]


def columns_of(id: str, lines: Lines) -> dict[str, bytes]:
    """The columns `lines` and `about` of a block."""
    if not len(lines):
        return {LINES: b"", ABOUT: b""}
    names = lines.names.distinct()
    body = codec.encode(replace(lines, names=names), {name: number for number, name in enumerate(names.table)})
    counts = zip(names.table, np.bincount(names.places).tolist(), strict=True)
    about = [(*name, count) for name, count in counts], worker_sizes.of_lines(lines)
    return {
        LINES: wrap(msgspec.msgpack.encode((names.table, body)), Place.of(id)),
        ABOUT: wrap(msgspec.msgpack.encode(about), Place.of(id)),
    }


def _id(owner: Owner, of_block: bytes) -> str:
    hashed = hashlib.blake2b(orjson.dumps([*owner]), digest_size=_HASH).digest()
    return urlsafe_b64encode(hashed + of_block).decode()


def batch_id(block: Block) -> bytes:
    """The part of a fragment's id that says which batch it is of."""
    return urlsafe_b64decode(block.id[_ID_OF_OWNER:])


def note(owner: Owner, deletion: str) -> NewBlock:
    """The owner's note, which says which deletion of lines is under way; "": none."""
    return NewBlock(owner, (NOTE, deletion), _id(owner, _ID_OF_NOTE), 0, 0, 0, {})


def note_in(blocks: Iterable[Block]) -> Block | None:
    """The note among an owner's blocks."""
    return next((block for block in blocks if block.series[0] == NOTE), None)


def bodies(owner: Owner, ids: Collection[bytes], up_to: int) -> NewBlock:
    """A block that names bodies which add nothing if they are sent again; its statement says that it is so far right.

    The same ids make the same block, so that it is there once, however often it is put.
    """
    content = b"".join(sorted(ids))
    id = _id(owner, hashlib.blake2b(content, digest_size=BATCH_ID).digest())
    statement = Statement(up_to, None, 0)
    column = {BATCHES: wrap(content, Place.of(id))}
    return NewBlock(owner, OF_BODIES, id, 0, 0, 0, column, statement, size=len(content))


@decoder
def bodies_of(columns: Columns) -> list[bytes]:
    """The ids of bodies that such a block names."""
    content = bytes(unwrap(columns[BATCHES]))
    return [content[at : at + BODY_ID] for at in range(0, len(content), BODY_ID)]


# --- lines of blocks -------------------------------------------------------------------------------

_lines_decoder = msgspec.msgpack.Decoder(tuple[list[Name], bytes])
_about_decoder = msgspec.msgpack.Decoder(tuple[list[tuple[str, str, int]], Sizes])


@decoder
def lines_of(block: Block, columns: Columns) -> Lines:
    """The lines of a block."""
    if not block.count:
        return NO_LINES
    names, body = _lines_decoder.decode(unwrap(columns[LINES]))
    lines = codec.decode(body, dict(enumerate(names)))
    if not block.lasts:
        lines.sequences = lines.sequences + ((block.version.place + _NEW) << _NUMBER)
    return lines


@decoder
def texts_of(columns: Columns) -> Texts:
    """What searches look at, of a block that has lines."""
    return codec.decode_texts(_lines_decoder.decode(unwrap(columns[LINES]))[1])


@decoder
def about_of(columns: Columns) -> tuple[list[tuple[str, str, int]], Sizes]:
    """The metric and variant of each series and how many lines it has, and how much each worker logged."""
    if not columns[ABOUT]:
        return [], []
    return _about_decoder.decode(unwrap(columns[ABOUT]))


@decoder
def batches_of(columns: Columns) -> Batches:
    """The fragments that the lines of a chunk came with."""
    return Batches.decode(unwrap(columns[BATCHES]))

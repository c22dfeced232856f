"""Makes the items of bulk requests from a batch. An item is an action and its document: two lines of JSON.

The events of a group share most of their text, so for each event only its own numbers are formatted. A log line is only
created, so a line that is sent again changes nothing. Other events replace the event of the same identity.

A large log line or sample has the field `large` with its size, so that readers know it before they ask for the text
(`paging.py`).
"""

from __future__ import annotations

import math
import os
import time
from binascii import b2a_base64
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import orjson
import zstandard

from apiserver.answers import will_read
from apiserver.events.log_text import sizes_of
from apiserver.events.model import EventBatch, EventType, LogColumns, Owner, Sample, ScalarColumns
from apiserver.stores.events.elasticsearch import names

#: The field `special` of a value that is not finite, as Elasticsearch does not take such values.
NAN, INFINITE, MINUS_INFINITE = 0, 1, -1

#: A log line or a sample is large if its text in a node's answer has so many bytes.
LARGE_LINE = 16 * 2**10
LARGE_SAMPLE = 64 * 2**10

_LEAST_COMPRESSED = 256
_ZSTD_LEVEL = 1
_EPOCH_US = 1_577_836_800_000_000  # 2020
_SERVER_BITS = 10


class Sequence:
    """Numbers log lines in the order in which this server takes them. Other servers give other numbers.

    A number is a time in microseconds, and 10 random bits of the server. So lines of different servers with the same
    timestamp are in the order of the servers' clocks.
    """

    def __init__(self) -> None:
        self._next = 0
        self._server = int.from_bytes(os.urandom(2), "big") % (1 << _SERVER_BITS)

    def take(self, count: int) -> range:
        """The next `count` numbers."""
        first = max(self._next, time.time_ns() // 1000 - _EPOCH_US)
        self._next = first + count
        step = 1 << _SERVER_BITS
        return range(first * step + self._server, self._next * step + self._server, step)


class Items:
    """Makes the items of batches for the indices of one prefix."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._sequence = Sequence()

    def of(self, batch: EventBatch, main: str | None = None) -> Iterator[str]:
        """Every event of the batch as an item, in the order they came. Items for the index `main` do not name it."""
        for group in batch.scalars:
            yield from self._scalars(group, batch.received, main)
        sent: dict[tuple[Owner, bytes], int] = {}
        for logs in batch.logs:
            yield from self._lines(logs, batch.received, sent, main)
        for sample in batch.samples:
            yield self._sample(sample, main)

    def index(self, type: EventType, owner: Owner) -> str:
        """The index of the owner's events of a type."""
        return names.index(self._prefix, type, owner.company)

    def _scalars(self, group: ScalarColumns, received: int, main: str | None) -> Iterator[str]:
        key = names.owner_key(group.owner)
        hashed = names.series_hash(key, group.metric, group.variant)
        index = self.index(EventType.SCALAR, group.owner)
        head, rest = _shared(
            "index",
            None if index == main else index,
            key,
            metric=group.metric,
            variant=group.variant,
            series=series_key(key, group.metric, group.variant),
            worker=group.worker,
            received=received,
        )
        columns = (group.iters.tolist(), group.timestamps.tolist(), group.values.tolist())
        for id, iter, timestamp, value in zip(names.ids(hashed, group.iters), *columns, strict=True):
            kept = f'"value":{value!r}' if math.isfinite(value) else f'"special":{_special(value)}'
            yield f'{head}{id}{rest}"iter":{iter},"timestamp":{timestamp},{kept}}}\n'

    def _lines(
        self, logs: LogColumns, received: int, sent: dict[tuple[Owner, bytes], int], main: str | None
    ) -> Iterator[str]:
        key, count = names.owner_key(logs.owner), len(logs.messages)
        body = logs.digest or os.urandom(16)
        first = sent.get((logs.owner, body), 0)
        sent[logs.owner, body] = first + count
        ids = names.ids(names.series_hash(key, body.hex()), np.arange(first, first + count))
        index = self.index(EventType.LOG, logs.owner)
        head, rest = _shared("create", None if index == main else index, key, received=received)
        sizes = sizes_of(logs.messages).tolist()
        extras = map(logs.extras.get, range(count))
        columns = (logs.timestamps.tolist(), logs.levels, logs.workers, logs.messages, logs.iters, sizes, extras)
        series = zip(logs.metrics, logs.variants, strict=True)
        rows = zip(ids, self._sequence.take(count), *columns, series, strict=True)
        for id, sequence, timestamp, level, worker, message, iter, size, extra, (metric, variant) in rows:
            given = "" if iter is None else f'"iter":{iter},'
            if level is not None:
                given += f'"level":{_json(level)},'
            if extra is not None:
                given += f'"extra":{orjson.dumps(extra.decode()).decode()},'
            given += _large(size if extra is None else size + len(extra), LARGE_LINE)
            yield (
                f'{head}{id}{rest}"timestamp":{timestamp},"sequence":{sequence},{given}'
                f'"worker":{_json(worker)},"metric":{_json(metric)},"variant":{_json(variant)},'
                f'"series":"{series_key(key, metric, variant)}",'
                f'"size":{size},"message":{orjson.dumps(message).decode()}}}\n'
            )

    def _sample(self, sample: Sample, main: str | None) -> str:
        key = names.owner_key(sample.owner)
        hashed = names.series_hash(key, sample.metric, sample.variant, sample.key)
        (id,) = names.ids(hashed, np.array([sample.iter], np.int64))
        index = self.index(sample.type, sample.owner)
        head, rest = _shared(
            "index",
            None if index == main else index,
            key,
            metric=sample.metric,
            variant=sample.variant,
            series=series_key(key, sample.metric, sample.variant),
            key=sample.key,
        )
        document = b2a_base64(packed(sample.document), newline=False).decode()
        large = _large(len(document), LARGE_SAMPLE)
        return f'{head}{id}{rest}"iter":{sample.iter},"timestamp":{sample.timestamp},{large}"document":"{document}"}}\n'


def repeats(batch: EventBatch) -> bool:
    """Whether an event of the batch may replace another event of the batch."""
    scalars = batch.scalars
    series = set(zip(scalars.owner, scalars.metrics, scalars.variants, strict=True))
    ascends = np.diff(scalars.iters) > 0
    ascends[np.cumsum(scalars.lengths[:-1], dtype=np.int64) - 1] = True  # from one group to the next
    samples = {(one.owner, one.type, one.metric, one.variant, one.iter, one.key) for one in batch.samples}
    return len(series) < len(scalars) or not ascends.all() or len(samples) < len(batch.samples)


def packed(document: bytes) -> bytes:
    """The document as it is stored: from 256 bytes up as a zstd frame, which never begins like JSON."""
    return zstandard.compress(document, _ZSTD_LEVEL) if len(document) >= _LEAST_COMPRESSED else document


def unpacked(stored: bytes) -> bytes:
    """The document from its stored form."""
    if not stored.startswith(zstandard.FRAME_HEADER):
        return stored
    will_read(zstandard.frame_content_size(stored))
    return zstandard.decompress(stored)


def _large(size: int, least: int) -> str:
    return f'"large":{size},' if size >= least else ""


def _special(value: float) -> int:
    if math.isnan(value):
        return NAN
    return INFINITE if value > 0 else MINUS_INFINITE


def _shared(action: str, index: str | None, routing: str, **fields: str | int) -> tuple[str, str]:
    """The text before the id, and the text between the id and the event's own fields."""
    shared = {"owner": routing, **fields}
    document = orjson.dumps(shared).decode().removesuffix("}")
    where = "" if index is None else f'"_index":{_json(index)},'
    return f'{{"{action}":{{{where}"routing":{_json(routing)},"_id":"', f'"}}}}\n{document},'


@lru_cache(maxsize=65536)
def series_key(owner: str, metric: str, variant: str) -> str:
    return names.series_key(names.series_hash(owner, metric, variant))


@lru_cache(maxsize=4096)
def _json(text: str) -> str:
    return orjson.dumps(text).decode()

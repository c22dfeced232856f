"""How much each worker logged. Each block says so of its lines."""

from __future__ import annotations

import msgspec

from apiserver.events.log_text import sizes_of
from apiserver.events.model import LogSize
from apiserver.stores.events.codec import worker_sizes
from apiserver.stores.events.codec.lines import Column, Lines
from apiserver.stores.events.codec.worker_sizes import Sizes
from apiserver.stores.events.embedded.log_walk import Log

_decoder = msgspec.msgpack.Decoder(Sizes)


def sizes(log: Log) -> dict[str, LogSize]:
    """How much each worker logged."""
    sizes_by_worker: dict[str, LogSize] = {}
    for (encoded,) in log.conn.execute("SELECT sizes FROM log_blocks WHERE owner = ?", (log.number,)):
        worker_sizes.add(sizes_by_worker, _decoder.decode(encoded))
    for columns in (part.columns for part in log.recent):
        worker_sizes.add(
            sizes_by_worker,
            worker_sizes.by_worker(Column.of(columns.workers), columns.timestamps, sizes_of(columns.messages)),
        )
    return sizes_by_worker


def encode(lines: Lines) -> bytes:
    """The sizes that a block keeps of its lines."""
    return msgspec.msgpack.encode(worker_sizes.of_lines(lines))


def workers(encoded: bytes) -> list[str]:
    """The workers that logged the lines of a block."""
    return [worker for worker, _, _ in _decoder.decode(encoded)]


def bytes_of(encoded: bytes) -> int:
    """Bytes of the lines of a block."""
    return sum(size for _, _, size in _decoder.decode(encoded))

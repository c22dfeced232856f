"""What the golden files have: folders of merged events, one of each schema, made by the server of its time.

`python -m tests.stores.events.embedded.golden` adds the file of the newest schema; the others are never made again.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import zstandard

from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.harness import served

FILES = Path(__file__).with_name("golden")
START = 1_700_000_000_000
LINES = 300
#: Points of a series that are sent before the server is stopped and started again.
HALF = 5_000


def noise(n: int) -> float:
    """A number from 0 to 1 that looks like chance: 32 bits of a product, so that it is the same everywhere."""
    return (n * 2654435761 % 2**32) / 2**32


def points() -> dict[str, list[tuple[int, float]]]:
    """The iterations and values of each variant of the metric `golden`."""
    return {
        "decimals": [(n * n, round(noise(n), 4)) for n in range(3_000)],
        "float32": [(n, round(1024 * noise(n)) / 1024) for n in range(10_000)],
        "float64": [(10 * n + n % 3, noise(n)) for n in range(7_000)],
        "negative": [(n - 2_000, -0.0 if n % 5 else -1e300 * noise(n)) for n in range(4_000)],
        "short": [(2**40 * n, float(n)) for n in range(3)],
    }


def time_of(n: int) -> int:
    """The timestamp of point n of a series."""
    return START + 137 * n + int(40 * noise(n))


def worker_of(n: int) -> str:
    """The worker of point n of a series."""
    return "second" if n % 1000 > 900 else "first"


def batches(task: str) -> Iterator[list[bytes]]:
    """The bodies of the batches that are sent, in two parts."""
    for part in (range(HALF), range(HALF, 2 * HALF)):
        bodies = []
        for variant, all_points in points().items():
            events: list[dict[str, Any]] = [
                {"type": "training_stats_scalar", "metric": "golden", "variant": variant, "worker": worker_of(n)}
                | {"task": task, "iter": all_points[n][0], "value": all_points[n][1], "timestamp": time_of(n)}
                for n in part
                if n < len(all_points)
            ]
            bodies += [_body(events)] if events else []
        if part.start == 0:
            log = {"task": task, "type": "log", "level": "info", "worker": "first"}
            bodies.append(_body([{**log, "timestamp": time_of(n), "msg": f"line {n}"} for n in range(LINES)]))
            plot = {"task": task, "type": "plot", "metric": "golden", "variant": "plot", "timestamp": START}
            bodies.append(_body([{**plot, "iter": n, "plot_str": json.dumps({"data": [n]})} for n in range(3)]))
        yield bodies


def _body(events: list[dict[str, Any]]) -> bytes:
    return "\n".join(map(json.dumps, events)).encode()


async def _seal(folder: Path) -> None:
    """Seal the chunks of the first batches; those of later ones stay as they are."""
    store = EmbeddedEventStore(folder)
    await store.open()
    await store.seal()
    await store.close()


def _make(folder: Path) -> None:
    with served(folder / "data") as server:
        task = server.call("tasks.create", {"name": "golden", "type": "training"})["id"]
        for n, bodies in enumerate(batches(task)):
            with server.client() as client:
                for body in bodies:
                    client.post("/events.add_batch", content=body).raise_for_status()
            server.stop()
            if n == 0:
                asyncio.run(_seal(folder / "data" / "events"))
                server.start()
    database = folder / "data" / "events" / "events.db"
    with closing(sqlite3.connect(database)) as connection:
        schema = connection.execute("PRAGMA user_version").fetchone()[0]
        connection.execute("PRAGMA journal_mode = DELETE")
    (FILES / f"schema-{schema}.db.zst").write_bytes(zstandard.compress(database.read_bytes(), 19))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        _make(Path(temporary))

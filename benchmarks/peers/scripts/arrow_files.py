"""Writes points that are in memory as Parquet, Arrow and CSV by pyarrow.

Started with JSON as its argument; answers seconds by the figure's key as JSON on its output.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet


def main(asked: dict[str, Any]) -> None:
    points, file = asked["points"], asked["file"]
    random, half = np.random.default_rng(0), points // 2
    iters = np.tile(np.arange(half), 2)
    names = pa.array(["m"]).take(pa.array(np.zeros(2 * half, np.int64)))
    variants = pa.array(["v000000", "v000001"]).take(pa.array(np.repeat([0, 1], half)))
    times = pa.array(1_700_000_000_000 + iters * 50 + random.integers(0, 5, 2 * half))
    columns = [names, variants, pa.array(iters), times.cast(pa.timestamp("ms", tz="UTC")), random.normal(size=2 * half)]
    table = pa.table(columns, ["metric", "variant", "iter", "timestamp", "value"])
    found = {}
    started = time.perf_counter()
    pa.parquet.write_table(table, file, compression="zstd")
    found["data.parquet"] = time.perf_counter() - started
    started = time.perf_counter()
    with pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table, 65_536)
    found["data.arrow"] = time.perf_counter() - started
    started = time.perf_counter()
    pa.csv.write_csv(table, file)
    found["data.csv"] = time.perf_counter() - started
    print(json.dumps(found))


main(json.loads(sys.argv[1]))

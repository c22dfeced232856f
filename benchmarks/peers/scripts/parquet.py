"""Writes points of many runs into a Parquet file, and makes one curve of them by DuckDB.

Started with JSON as its argument; answers milliseconds by the figure's key as JSON on its output.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any

import duckdb

_WRITE = """
COPY (
    SELECT run::INTEGER AS run, iter::INTEGER AS iter, (exp(-3 * iter / {points}) + random() / 10)::FLOAT AS value
    FROM range({tasks}) AS runs (run), range({points}) AS iters (iter) ORDER BY run, iter
) TO '{file}' (COMPRESSION zstd)
"""
_READ = """
WITH means AS (SELECT run, iter // {width} AS bucket, avg(value) AS mean FROM '{file}' GROUP BY run, bucket)
SELECT bucket, count(*), avg(mean), stddev_pop(mean), min(mean), max(mean), quantile_cont(mean, {quantiles})
FROM means GROUP BY bucket ORDER BY bucket
"""


def main(asked: dict[str, Any]) -> None:
    connection = duckdb.connect()
    connection.execute(_WRITE.format(**asked))
    found = {}
    for key, width in asked["widths"].items():
        query = _READ.format(**asked, width=width)
        connection.execute(query).fetchall()
        taken = []
        for _ in range(asked["runs"]):
            started = time.perf_counter()
            connection.execute(query).fetchall()
            taken.append((time.perf_counter() - started) * 1000)
        found[key] = statistics.median(taken)
    print(json.dumps(found))


main(json.loads(sys.argv[1]))

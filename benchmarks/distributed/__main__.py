"""Measures servers on Elasticsearch and MongoDB: `python -m benchmarks.distributed [--quick|--replica] [--into FILE]`.

The engines are those that the tests use: started here, or named by the environment. With `--into FILE`, the table is
also written into a Markdown file, between its markers. With `--replica`, there are two nodes of Elasticsearch, with a
copy of everything on each, and the bars for writing are scaled.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import report
from benchmarks.distributed import copying, disk, engines, reading, writing
from benchmarks.distributed.figures import FIGURES, scaled
from benchmarks.distributed.plain import Plain
from benchmarks.distributed.run import QUICK, Run, Sizes
from benchmarks.processes import busy_seconds, own_seconds
from benchmarks.server import running
from benchmarks.table import Table
from tests import ending

SECTION, WITH_REPLICA = "figures of the engines", "figures of the engines with a replica"


def main() -> None:
    """Measure everything, and print the table."""
    options = _options()
    table = Table(scaled(2) if options.replica else FIGURES)
    started, busy, own = time.monotonic(), busy_seconds(), own_seconds()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        _measure(Path(folder), QUICK if options.quick else Sizes(), table, options.replica)
    others = max(0.0, busy_seconds() - busy - own_seconds() + own) / (time.monotonic() - started)
    nodes = "two nodes of Elasticsearch 8.17 with heaps" if options.replica else "Elasticsearch 8.17 with a heap"
    note = f"{nodes} of 1 GB; other programs used {others:.1f} cores"
    head = report.head(note, quick=options.quick)
    sys.stdout.write(f"{head}\n\n{table.markdown() if options.markdown else table.text()}")
    if options.into:
        report.insert(options.into, head, table.markdown(), WITH_REPLICA if options.replica else SECTION)


def _measure(folder: Path, sizes: Sizes, table: Table, replica: bool) -> None:
    with (
        engines.running(folder, replica=replica) as both,
        running(folder / "first", both.settings) as first,
        running(folder / "second", both.settings) as second,
    ):
        run = Run(both, Plain(both), first, second, sizes, table)
        points, lines = reading.measure(run)
        disk.measure(run, points, lines)
        writing.measure(run)
        copying.measure(run, folder)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.distributed", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--quick", action="store_true", help="tiny data: only shows that it runs")
    parser.add_argument("--replica", action="store_true", help="two nodes of Elasticsearch, a copy on each")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--into", type=_marked, help="also write the table into this Markdown file")
    parser.add_argument("--folder", type=Path, help="where to put data (2 GB); the system's temporary folder")
    return parser.parse_args()


def _marked(text: str) -> Path:
    path = Path(text)
    for section in (SECTION, WITH_REPLICA):
        if not report.has_markers(path, section):
            raise argparse.ArgumentTypeError(f"{path} has no markers for {section}")
    return path


if __name__ == "__main__":
    sys.exit(ending.run(main))

"""Measures everything and prints one table: `python -m benchmarks [--quick] [--only writing,reading]`.

With `--into FILE`, the table is also written into a Markdown file, between its markers.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

from benchmarks import (
    backups,
    bounded,
    changes,
    data,
    deleting,
    documents,
    engine,
    groups,
    importing,
    lists,
    live,
    memory,
    peers,
    reading,
    report,
    sdks,
    sealing,
    vendors,
    viewer,
    writing,
)
from benchmarks.figures import FIGURES
from benchmarks.peers import pages
from benchmarks.run import QUICK, Run, Sizes
from benchmarks.table import Table
from tests import ending

SECTIONS: dict[str, Callable[[Run], None]] = {
    "writing": writing.measure,
    "bounded": bounded.measure,
    "engine": engine.measure,
    "sealing": sealing.measure,
    "reading": reading.measure,
    "groups": groups.measure,
    "vendors": vendors.measure,
    "lists": lists.measure,
    "sdks": sdks.measure,
    "changes": changes.measure,
    "data": data.measure,
    "live": live.measure,
    "viewer": viewer.measure,
    "viewer-peers": pages.measure,
    "importing": importing.measure,
    "deleting": deleting.measure,
    "backups": backups.measure,
    "memory": memory.measure,
    "peers": peers.measure,
    "documents": documents.measure,
}


def main() -> int:
    """Run the sections that were asked for, also after one has failed. Returns 1 if one failed, else 0."""
    options = _options()
    sizes = QUICK if options.quick else Sizes()
    if options.growth_points is not None:
        sizes = dataclasses.replace(sizes, growth_points=options.growth_points)
    if options.backup_points is not None:
        sizes = dataclasses.replace(sizes, backup_points=options.backup_points)
    if options.followed_seconds is not None:
        sizes = dataclasses.replace(sizes, followed_seconds=options.followed_seconds)
    table = Table(FIGURES)
    failed = [name for name in options.only if not _succeeds(name, options.folder, sizes, table)]
    head = report.head(_growth(sizes), quick=options.quick)
    sys.stdout.write(f"{head}\n\n{table.markdown() if options.markdown else table.text()}")
    if failed:
        sys.stderr.write(f"failed: {', '.join(failed)}\n")
    elif options.into:
        report.insert(options.into, head, table.markdown())
    return 1 if failed else 0


def _growth(sizes: Sizes) -> str:
    if not sizes.growth_points:
        return ""
    return f"grown: from {sizes.other_points:,} to {sizes.growth_points:,} points in other tasks"


def _succeeds(name: str, parent: Path | None, sizes: Sizes, table: Table) -> bool:
    sys.stderr.write(f"--- {name}\n")
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        try:
            SECTIONS[name](Run(Path(folder), sizes, table))
        except Exception:
            traceback.print_exc()
            return False
    return True


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny data: only shows that it runs")
    parser.add_argument("--only", type=_names, default=list(SECTIONS), help=f"some of {','.join(SECTIONS)}")
    parser.add_argument(
        "--growth-points", type=int, help="points in other tasks when the data folder has grown; 0: skip"
    )
    parser.add_argument("--backup-points", type=int, help="points of which backups are made; 20 million")
    parser.add_argument("--followed-seconds", type=float, help="how long a page follows live charts; 3600: an hour")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--into", type=_marked, help="also write the table into this Markdown file")
    parser.add_argument("--folder", type=Path, help="where to put data (several GB); the system's temporary folder")
    return parser.parse_args()


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := set(names) - set(SECTIONS):
        raise argparse.ArgumentTypeError(f"no such section: {', '.join(sorted(unknown))}")
    return names


def _marked(text: str) -> Path:
    path = Path(text)
    if not report.has_markers(path):
        raise argparse.ArgumentTypeError(f"{path} has no markers for figures")
    return path


if __name__ == "__main__":
    sys.exit(ending.run(main))

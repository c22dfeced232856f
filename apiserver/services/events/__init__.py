"""events.*: writing and reading scalars, vectors, plots, debug images and logs."""

from apiserver.services.events import (
    clear,
    download,
    logs,
    multi_plots,
    navigate,
    raw,
    samples,
    scalars,
    series,
    task_events,
    vectors,
    write,
)

__all__ = [
    "clear",
    "download",
    "logs",
    "multi_plots",
    "navigate",
    "raw",
    "samples",
    "scalars",
    "series",
    "task_events",
    "vectors",
    "write",
]

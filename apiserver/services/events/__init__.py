"""events.*: what is written and read of scalars, vectors, plots, debug images and logs."""

from apiserver.services.events import logs, samples, scalars, series, task_events, vectors, write

__all__ = ["logs", "samples", "scalars", "series", "task_events", "vectors", "write"]

"""What is to be shown: each figure once, with its unit and the bar it is held against."""

from __future__ import annotations

from dataclasses import dataclass

DECODE = "typed decode, grouping"
DICTS = "decode into dicts"
ROWS = "rows in SQLite"
PING = "debug.ping"
REDUCE = "np.add.reduceat"
MLFLOW = "MLflow"
TENSORBOARD = "TensorBoard data server"
WITHOUT = "without the scanner"
BEFORE = "before growth"
FIRST = "the first time"


@dataclass(frozen=True, slots=True)
class Bar:
    """A bound of a value, or of its ratio to what is measured beside it under the name `to`."""

    limit: float
    to: str | None = None
    at_least: bool = False

    def holds(self, value: float, beside: dict[str, float]) -> bool | None:
        """Whether the bar is met; None when what it compares with was not measured."""
        if self.to is not None:
            if self.to not in beside:
                return None
            value /= beside[self.to]
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        sign = "≥" if self.at_least else "≤"
        limit = f"{self.limit:,.8g}" if self.limit >= 1 else f"1/{1 / self.limit:g}"
        return f"{sign} {limit}" + (f" × {self.to}" if self.to else "")


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    key: str
    name: str
    unit: str
    bars: tuple[Bar, ...] = ()


def least(limit: float) -> Bar:
    """A bar for what shall be much."""
    return Bar(limit, at_least=True)


#: The reads that are measured twice: before and after the data folder has grown.
READS = (
    Figure("histogram.100", "histogram of 10 series × 100k, 100 samples", "ms", (Bar(5),)),
    Figure("histogram.2000", "histogram of 10 series × 100k, 2000 samples", "ms", (Bar(8),)),
    Figure("histogram.6000", "histogram of 10 series × 100k, 6000 samples", "ms", (Bar(15),)),
    Figure("histogram.long", "histogram of one series of 10 M, 6000 samples", "ms", (Bar(15),)),
    Figure("histogram.tasks", "histogram of 10 tasks × 10 series × 50k, 100 samples", "ms", (Bar(40),)),
    Figure("raw", "raw page of 10k points", "ms", (Bar(5),)),
    Figure("log.newest", "log of 10 M lines, newest 100", "ms", (Bar(2),)),
    Figure("log.middle", "log of 10 M lines, 500 from the middle", "ms", (Bar(3),)),
)
RESTARTED = Figure("histogram.restarted", "histogram of one series of 10 M, server just restarted", "ms", (Bar(40),))

#: By how much a figure may change when the data folder grows.
GROWTH = 1.5
#: The same of writing, which is not to change at all, but for what the machine's noise makes.
WRITE_GROWTH = 1.1

FIGURES: tuple[Figure, ...] = (
    Figure("write.cpu", "add_batch of 10k events, server CPU an event", "ns", (Bar(2, DECODE),)),
    Figure("write.rate", "add_batch of 10k events, one client", "events/s", (least(500_000),)),
    Figure("scanner.cpu", "add_batch of 10k events, compiled scanner, CPU an event", "ns", (Bar(600),)),
    Figure("scanner.rate", "add_batch of 10k events, compiled scanner, one client", "events/s", (least(1_000_000),)),
    Figure("write.small", "add_batch of 10 events, median", "ms", (Bar(1),)),
    Figure("clients.rate", "add_batch of 100 events, 8 clients", "events/s", (least(250_000),)),
    Figure("clients.p99", "add_batch of 100 events, 8 clients, p99", "ms", (Bar(30),)),
    Figure("clients.cpu", "add_batch of 100 events, 8 clients, CPU an event", "ns"),
    Figure("log.rate", "log lines in, 10k a batch, one client", "lines/s", (least(250_000),)),
    Figure("log.cpu", "log lines in, CPU a line", "ns"),
    Figure("engine.20", "engine CPU to merged, 20 series, 10k a batch", "ns/point", (Bar(200), Bar(1 / 6, ROWS))),
    Figure("engine.100", "engine CPU to merged, 20 series, 100 a batch", "ns/point", (Bar(200), Bar(1 / 6, ROWS))),
    Figure("engine.10k", "engine CPU to merged, 10k series, 10k a batch", "ns/point", (Bar(1000),)),
    *READS[:4],
    RESTARTED,
    *READS[4:],
    Figure("vendor.modelarts", "ModelArts metrics, a week every 30 s, 8 GPUs", "ms", (Bar(50),)),
    Figure("vendor.baseten", "Baseten metrics, the same week", "ms", (Bar(50),)),
    Figure("vendor.pai", "PAI GetJobMetrics, the same week by 5 minutes", "ms", (Bar(50),)),
    Figure("vendor.log", "ModelArts log preview, 5 MB of 1 M lines", "ms", (Bar(200),)),
    Figure("delete", "delete_for_task of 1 M points", "ms", (Bar(200),)),
    Figure("delete.returned", "space given back when 10 of 11 M points go", "%", (least(80),)),
    Figure("disk.points", "disk, a point", "bytes", (Bar(12),)),
    Figure("disk.lines", "disk, a log line of 68 characters", "bytes", (Bar(30),)),
    Figure("memory.idle", "memory, idle", "MB", (Bar(150),)),
    Figure("memory.peak", "memory, peak while 4 clients write 10 M points", "MB", (Bar(600),)),
    Figure("write.four", "add_batch of 10k events, 4 clients, meanwhile", "events/s"),
    Figure("start", "start on an empty folder, to the first answer", "ms"),
    *(Figure(f"grown.{read.key}", f"grown: {read.name}", "ms", (Bar(GROWTH, BEFORE),)) for read in READS),
    Figure(f"grown.{RESTARTED.key}", f"grown: {RESTARTED.name}", "ms", (Bar(GROWTH, BEFORE),)),
    Figure("grown.write.cpu", "grown: add_batch of 10k, CPU an event", "ns", (Bar(WRITE_GROWTH, BEFORE),)),
    Figure("grown.write.rate", "grown: add_batch of 10k", "events/s", (Bar(1 / WRITE_GROWTH, BEFORE, True),)),
)

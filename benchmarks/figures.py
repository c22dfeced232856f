"""All figures, each with its unit and its bars. `docs/operations/figures.md` explains their names."""

from __future__ import annotations

from dataclasses import dataclass

DECODE = "typed decode, grouping"
DICTS = "decode into dicts"
ROWS = "rows in SQLite"
PING = "debug.ping"
REDUCE = "np.add.reduceat"
NUMPY = "numpy, the points in memory"
PCODEC = "pcodec alone"
UNSEALED = "before they are sealed"
DUCKDB = "DuckDB, the points in Parquet"
MLFLOW = "MLflow"
TENSORBOARD = "TensorBoard data server"
WITHOUT = "without the scanner"
BEFORE = "before growth"
NO_BACKUP = "without a backup"
FIRST = "the first time"
PING_EACH = "debug.ping for each task"
UNWATCHED = "nobody watches"
UNBOUNDED = "without quotas, audit log and metrics"
UNLIMITED = "without quotas"
#: Writes the same points from memory.
PYARROW = "pyarrow, the points in memory"
POLLING = "asking every 10 s"
UPLOT = "uPlot alone, as many lines"
EMPTY = "an empty page"
AGAIN = "again, from the browser's cache"
PLAIN_LIST = "a plain list"
QUARTER, HALF, THREE_QUARTERS = "after a quarter of it", "after half of it", "after three quarters"
TENSORBOARD_PAGE, MLFLOW_PAGE, CLEARML_PAGE = "TensorBoard", "MLflow's web UI", "ClearML's web UI"


@dataclass(frozen=True, slots=True)
class Bar:
    """A limit that a figure should keep: the greatest value or, with `at_least`, the least.

    With `to`, the limit is for the ratio of the figure to the limit or peer of that name. For example, `Bar(2, DECODE)`
    says that the figure is at most twice the time of a typed decode, measured in the same run.
    """

    limit: float
    to: str | None = None
    at_least: bool = False

    def holds(self, value: float, beside: dict[str, float]) -> bool | None:
        """Whether the bar is met. `beside`: limits and peers by name. None if the one it needs was not measured."""
        if self.to is not None:
            if self.to not in beside:
                return None
            value /= beside[self.to]
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        sign = "≥" if self.at_least else "≤"
        limit = f"{self.limit:,.8g}" if self.limit >= 1 or self.to is None else f"1/{1 / self.limit:g}"
        return f"{sign} {limit}" + (f" × {self.to}" if self.to else "")


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. Code knows the figure by its `key`, readers by its `name`."""

    key: str
    name: str
    unit: str
    bars: tuple[Bar, ...] = ()


def least(limit: float) -> Bar:
    """A bar for a value that should be large, such as a rate."""
    return Bar(limit, at_least=True)


#: The reads that are measured twice: before and after the data folder has grown.
READS = (
    Figure("histogram.100", "histogram of 10 series × 100k, 100 samples", "ms", (Bar(2),)),
    Figure("histogram.2000", "histogram of 10 series × 100k, 2000 samples", "ms", (Bar(8),)),
    Figure("histogram.6000", "histogram of 10 series × 100k, 6000 samples", "ms", (Bar(15),)),
    Figure("histogram.long", "histogram of one series of 10 M, 6000 samples", "ms", (Bar(4),)),
    Figure("histogram.tasks", "histogram of 10 tasks × 10 series × 50k, 100 samples", "ms", (Bar(40),)),
    Figure("raw", "raw page of 10k points", "ms", (Bar(5),)),
    Figure("log.newest", "log of 10 M lines, newest 100", "ms", (Bar(2),)),
    Figure("log.middle", "log of 10 M lines, 500 from the middle", "ms", (Bar(3),)),
)
RESTARTED = Figure("histogram.restarted", "histogram of one series of 10 M, server just restarted", "ms", (Bar(40),))

_SMOOTHINGS = {
    "ema": "an exponential average",
    "x_ema": "an average by distances",
    "mean": "a mean of 101 points",
    "median": "a median of 31 points",
    "derivative": "its derivative",
}
#: Histograms of the long series when nothing is known of its smoothed curves, and again; for each, all or a hundredth.
SMOOTHED = (
    *(
        Figure(f"smoothed.{by}", f"one series of 10 M, smoothed: {name}", "ms", (Bar(200),))
        for by, name in _SMOOTHINGS.items()
    ),
    *(
        Figure(f"smoothed.{by}.{key}", f"one series of 10 M, smoothed: {name}, {look}", "ms", (Bar(20),))
        for key, look in (("again", "again"), ("zoom", "a hundredth of it"))
        for by, name in _SMOOTHINGS.items()
    ),
)

#: Pages of 30 tasks, from 100,000.
PAGES = (
    Figure("list.all.last_update", "30 tasks: of all, newest first", "ms", (Bar(50),)),
    Figure("list.all.name", "30 tasks: of all by name", "ms", (Bar(50),)),
    Figure("list.all.status", "30 tasks: of all by status", "ms", (Bar(50),)),
    Figure("list.all.type", "30 tasks: of all by type, descending", "ms", (Bar(50),)),
    Figure("list.all.user", "30 tasks: of all by user", "ms", (Bar(50),)),
    Figure("list.all.started", "30 tasks: of all by start, descending", "ms", (Bar(50),)),
    Figure("list.all.duration", "30 tasks: of all by duration, descending", "ms", (Bar(50),)),
    Figure("list.all.metric", "30 tasks: of all by a metric, descending", "ms", (Bar(50),)),
    Figure("list.all.parameter", "30 tasks: of all by a hyperparameter", "ms", (Bar(50),)),
    Figure("list.all.comment", "30 tasks: of all by comment", "ms", (Bar(50),)),
    Figure("list.all.deep", "30 tasks: of all, newest first, from the middle", "ms", (Bar(50),)),
    Figure("list.all.deep.name", "30 tasks: of all by name, from the middle", "ms", (Bar(50),)),
    Figure("list.all.tags", "30 tasks: of all with a tag, newest first", "ms", (Bar(50),)),
    Figure("list.all.failed", "30 tasks: of all of a status and a type, newest first", "ms", (Bar(50),)),
    Figure("list.all.rare", "30 tasks: of all of a rare status and type, newest first", "ms", (Bar(50),)),
    Figure("list.all.rare.name", "30 tasks: of all of a rare status and type by name", "ms", (Bar(50),)),
    Figure("list.all.rare.metric", "30 tasks: of all of a rare status and type by a metric", "ms", (Bar(50),)),
    Figure("list.all.pattern", "30 tasks: of all, a pattern in id or name", "ms", (Bar(50),)),
    Figure("list.all.nowhere", "30 tasks: of all, a pattern that is nowhere", "ms", (Bar(50),)),
    Figure("list.all.accents", "30 tasks: of all, a word with accents that is nowhere", "ms", (Bar(50),)),
    Figure("list.all.search", "30 tasks: of all, searched everywhere", "ms", (Bar(50),)),
    Figure("list.all.search.nowhere", "30 tasks: of all, searched everywhere, found nowhere", "ms", (Bar(50),)),
    Figure("list.all.rare.tag", "30 tasks: of all with two tags by name", "ms", (Bar(50),)),
    Figure("list.all.value", "30 tasks: of all with a value of a hyperparameter, newest first", "ms", (Bar(50),)),
    Figure("list.all.range", "30 tasks: of all with a metric in a range, newest first", "ms", (Bar(50),)),
    Figure("list.all.ids", "30 tasks: of 100 ids", "ms", (Bar(50),)),
    Figure("list.project.last_update", "30 tasks: of the largest project, newest first", "ms", (Bar(50),)),
    Figure("list.project.name", "30 tasks: of the largest project by name", "ms", (Bar(50),)),
    Figure("list.project.metric", "30 tasks: of the largest project by a metric", "ms", (Bar(50),)),
    Figure("list.project.parameter", "30 tasks: of the largest project by a hyperparameter", "ms", (Bar(50),)),
    Figure("list.project.deep", "30 tasks: of the largest project, from the middle", "ms", (Bar(50),)),
    Figure("list.project.tags", "30 tasks: of the largest project with a tag", "ms", (Bar(50),)),
    Figure("list.project.pattern", "30 tasks: of the largest project, a pattern", "ms", (Bar(50),)),
    Figure("list.small.last_update", "30 tasks: of the smallest project, newest first", "ms", (Bar(50),)),
    Figure("list.small.name", "30 tasks: of the smallest project by name", "ms", (Bar(50),)),
    Figure("list.small.metric", "30 tasks: of the smallest project by a metric", "ms", (Bar(50),)),
    Figure("list.values", "tasks: 10 ids with their last_metrics", "ms", (Bar(50),)),
)
#: The other lists of the web UI.
LISTS = (
    Figure("list.dashboard.projects", "dashboard: 9 projects with stats", "ms", (Bar(100),)),
    Figure("list.dashboard.tasks", "dashboard: 5 tasks", "ms", (Bar(100),)),
    Figure("list.dashboard.reports", "dashboard: reports", "ms", (Bar(100),)),
    Figure("list.projects", "projects: 12 at the top with stats", "ms", (Bar(100),)),
    Figure("list.project", "projects: one with stats", "ms", (Bar(100),)),
    Figure("list.projects.tags", "projects.get_project_tags", "ms", (Bar(100),)),
    Figure("list.projects.users", "projects.get_user_names, all", "ms", (Bar(100),)),
    Figure("list.project.users", "projects.get_user_names, largest project", "ms", (Bar(100),)),
    Figure("list.projects.pattern", "projects: a pattern in the name", "ms", (Bar(100),)),
    Figure("list.tasks.types", "tasks.get_types, all", "ms", (Bar(100),)),
    Figure("list.project.types", "tasks.get_types, largest project", "ms", (Bar(100),)),
    Figure("list.tasks.tags", "projects.get_task_tags, all", "ms", (Bar(100),)),
    Figure("list.project.task.tags", "projects.get_task_tags, largest project", "ms", (Bar(100),)),
    Figure("list.models.tags", "projects.get_model_tags, all", "ms", (Bar(100),)),
    Figure("list.tasks.parents", "projects.get_task_parents, all", "ms", (Bar(100),)),
    Figure("list.project.parents", "projects.get_task_parents, largest project", "ms", (Bar(100),)),
    Figure("list.tasks.metrics", "projects.get_unique_metric_variants, all", "ms", (Bar(100),)),
    Figure("list.project.metrics", "projects.get_unique_metric_variants, largest project", "ms", (Bar(100),)),
    Figure("list.project.parameters", "projects.get_hyper_parameters, largest project", "ms", (Bar(100),)),
    Figure("list.parameter.values", "projects.get_hyperparam_values, largest project", "ms", (Bar(100),)),
    Figure("list.models", "models table, newest first", "ms", (Bar(100),)),
    Figure("list.models.metadata", "models table by metadata", "ms", (Bar(100),)),
    Figure("list.frameworks", "models.get_frameworks, all", "ms", (Bar(100),)),
    Figure("list.users", "users.get_all", "ms", (Bar(100),)),
    Figure("list.queues", "queues.get_all_ex", "ms", (Bar(100),)),
    Figure("list.organization.tags", "organization.get_tags", "ms", (Bar(100),)),
    Figure("list.organization.counts", "organization.get_entities_count", "ms", (Bar(100),)),
)

#: What reports of 1,000 and of 2,500 SDKs cost, while histograms are read.
SDKS = (
    Figure("sdks.few.cores", "1,000 SDKs: cores that the server uses", "cores", (Bar(0.45),)),
    Figure("sdks.few.cpu", "1,000 SDKs: CPU a request", "µs"),
    Figure("sdks.few.p99", "1,000 SDKs: p99 of their requests", "ms", (Bar(50),)),
    Figure("sdks.few.histogram", "1,000 SDKs: p99 of histograms read meanwhile", "ms"),
    Figure("sdks.few.memory", "1,000 SDKs: memory, peak", "MB", (Bar(300),)),
    Figure("scanner.sdks.cores", "1,000 SDKs, compiled scanner: cores that the server uses", "cores", (Bar(0.45),)),
    Figure("scanner.sdks.cpu", "1,000 SDKs, compiled scanner: CPU a request", "µs"),
    Figure("scanner.sdks.p99", "1,000 SDKs, compiled scanner: p99 of their requests", "ms", (Bar(50),)),
    Figure("scanner.sdks.histogram", "1,000 SDKs, compiled scanner: p99 of histograms read meanwhile", "ms"),
    Figure("scanner.sdks.memory", "1,000 SDKs, compiled scanner: memory, peak", "MB", (Bar(300),)),
    Figure("sdks.many.cores", "2,500 SDKs: cores that the server uses", "cores"),
    Figure("sdks.many.cpu", "2,500 SDKs: CPU a request", "µs"),
    Figure("sdks.many.p99", "2,500 SDKs: p99 of their requests", "ms", (Bar(50),)),
    Figure("sdks.many.histogram", "2,500 SDKs: p99 of histograms read meanwhile", "ms"),
    Figure("sdks.many.memory", "2,500 SDKs: memory, peak", "MB", (Bar(300),)),
)

#: How much slower a read may be after the data folder has grown.
GROWTH = 1.5
#: How much slower writing may be then. It should not change at all, but measurements vary that much.
WRITE_GROWTH = 1.1


def _bounded(key: str, batch: str) -> Figure:
    return Figure(key, f"quotas, audit log and metrics: CPU of {batch}", "ms", (Bar(1.03, UNBOUNDED),))


FIGURES: tuple[Figure, ...] = (
    Figure("write.cpu", "add_batch of 10k events, server CPU an event", "ns", (Bar(2, DECODE),)),
    Figure("write.rate", "add_batch of 10k events, one client", "events/s", (least(500_000),)),
    Figure("scanner.cpu", "add_batch of 10k events, compiled scanner, CPU an event", "ns", (Bar(600),)),
    Figure("scanner.rate", "add_batch of 10k events, compiled scanner, one client", "events/s", (least(1_000_000),)),
    Figure("write.small", "add_batch of 10 events, median", "ms", (Bar(1),)),
    Figure("clients.rate", "add_batch of 100 events, 8 clients", "events/s", (least(250_000),)),
    Figure("clients.p99", "add_batch of 100 events, 8 clients, p99", "ms", (Bar(30),)),
    Figure("clients.cpu", "add_batch of 100 events, 8 clients, CPU an event", "ns"),
    _bounded("bounded.10", "10 points in 10 series"),
    _bounded("bounded.one", "100 points in one series"),
    _bounded("bounded.100", "100 points in 100 series"),
    _bounded("bounded.1000", "5,000 points in 1,000 series"),
    _bounded("bounded.long", "10,000 points in 20 series"),
    Figure("log.rate", "log lines in, 10k a batch, one client", "lines/s", (least(250_000),)),
    Figure("log.cpu", "log lines in, CPU a line", "ns"),
    Figure("engine.20", "engine CPU to merged, 20 series, 10k a batch", "ns/point", (Bar(200), Bar(1 / 6, ROWS))),
    Figure("engine.100", "engine CPU to merged, 20 series, 100 a batch", "ns/point", (Bar(200), Bar(1 / 6, ROWS))),
    Figure("engine.10k", "engine CPU to merged, 10k series, 10k a batch", "ns/point", (Bar(1000),)),
    *READS[:4],
    RESTARTED,
    *SMOOTHED,
    *READS[4:],
    Figure("log.window", "log of 10 M lines, a window of 200 by number", "ms", (Bar(5),)),
    Figure("log.search", "log of 10 M lines, searched for a text that one line has", "s", (Bar(5),)),
    Figure("log.search.cpu", "the same: CPU a million lines", "s", (Bar(0.3),)),
    Figure("groups.200", "one curve of 1,000 runs × 10k points, 200 buckets", "ms", (Bar(150),)),
    Figure("groups.1000", "one curve of 1,000 runs × 10k points, 1000 buckets", "ms", (Bar(150),)),
    Figure("groups.duration", "one curve of 1,000 runs × 10k points, over time since the start", "ms"),
    Figure("groups.ten", "ten curves of 100 runs × 10k points each, 200 buckets", "ms", (Bar(150),)),
    Figure("groups.cpu", "one curve of 1,000 runs × 10k points, 200 buckets, server CPU", "ms"),
    Figure("vendor.modelarts", "ModelArts metrics, a week every 30 s, 8 GPUs", "ms", (Bar(50),)),
    Figure("vendor.baseten", "Baseten metrics, the same week", "ms", (Bar(50),)),
    Figure("vendor.pai", "PAI GetJobMetrics, the same week by 5 minutes", "ms", (Bar(50),)),
    Figure("vendor.log", "ModelArts log preview, 5 MB of 1 M lines", "ms", (Bar(200),)),
    *PAGES,
    *LISTS,
    Figure("list.first", "30 tasks: of all by a metric, the first time ever", "ms"),
    Figure("list.restarted", "30 tasks: of all by a metric, server just restarted", "ms", (Bar(100),)),
    Figure("list.memory", "memory after all lists", "MB", (Bar(120),)),
    *SDKS,
    Figure("changes.idle", "1,000 tasks watched, asked once a second, nothing happens", "% of a core", (Bar(1),)),
    Figure("changes.busy", "changes of 1,000 tasks × 10 series", "ms", (Bar(100),)),
    Figure("changes.add", "engine CPU of adding 100 points, 1,000 tasks watched", "µs", (Bar(1.05, UNWATCHED),)),
    Figure("data.parquet", "10 M points of two curves as Parquet by their URL", "s"),
    Figure("data.arrow", "the same as Arrow", "s"),
    Figure("data.csv", "the same as CSV", "s"),
    Figure("data.memory", "the same: memory over idle, peak", "MB", (Bar(64),)),
    Figure("data.charts", "200 runs × 2,000 buckets for charts", "ms", (Bar(100),)),
    Figure("data.charts.size", "the same: bytes", "MB", (Bar(6),)),
    Figure("viewer.size", "the scripts and styles of the page of a run, gzipped", "KB", (Bar(120),)),
    Figure("viewer.curves", "a page of 20 charts of 10 curves × 100k points: drawn after the click", "ms", (Bar(700),)),
    Figure("viewer.curves.bytes", "the same: bytes over the wire", "MB", (Bar(1.5),)),
    Figure("viewer.opened", "the same by its address, nothing in the browser's cache", "ms"),
    Figure("viewer.zoom", "the same: the chart that is zoomed shows finer buckets", "ms", (Bar(150),)),
    Figure("viewer.zoom.all", "the same: all charts of the page do", "ms"),
    Figure("viewer.runs", "100 runs × 2,000 buckets in one chart", "ms", (Bar(500),)),
    Figure("viewer.groups", "1,000 runs grouped in one chart", "ms", (Bar(700),)),
    Figure("viewer.table", "the table of 100,000 runs while it is scrolled", "frames/s", (Bar(50, at_least=True),)),
    Figure("viewer.memory", "following 50 charts: memory of the page", "MB", (Bar(1.1, QUARTER),)),
    Figure("pages.drawn", "a page of 20 charts of ten runs × 10k points, by its address: drawn", "s"),
    Figure("pages.bytes", "the page of ten runs: bytes over the wire", "MB"),
    Figure("pages.heap", "the page of ten runs: its memory", "MB"),
    Figure("live.lag", "2,000 live streams of 200 tasks that report each second: told after, p99", "ms", (Bar(500),)),
    Figure("live.cores", "the same: cores of the server", "cores", (Bar(0.3),)),
    Figure("live.memory", "the same: memory, a stream", "KB", (Bar(20),)),
    Figure("live.write", "the same: acknowledging a point, median", "ms"),
    Figure(
        "import.tensorboard", "event files of TensorBoard imported, 10 runs × 20 series", "points/s", (least(200_000),)
    ),
    Figure("import.cpu", "the same: CPU of the importer, a point", "ns"),
    Figure("delete", "delete_for_task of 1 M points", "ms", (Bar(200),)),
    Figure("delete.returned", "space given back when 10 of 11 M points go", "%", (least(80),)),
    Figure("backup.writing", "writing while backups are made", "points/s", (Bar(0.8, NO_BACKUP, at_least=True),)),
    Figure("backup.again", "backup after 1 % more points, in a new task: copied", "%", (Bar(3),)),
    Figure("backup.again.all", "backup after 1 % more points in each of 1000 series: copied", "%", (Bar(3),)),
    Figure("disk.points", "disk, a point", "bytes", (Bar(12),)),
    Figure("sealed.losses", "disk, a sealed point: losses, float32", "bytes", (Bar(4),)),
    Figure("sealed.decimals", "disk, a sealed point: rounded to four decimals", "bytes", (Bar(2.8),)),
    Figure("sealed.cosine", "disk, a sealed point: a cosine", "bytes", (Bar(1.9),)),
    Figure("sealed.accuracies", "disk, a sealed point: multiples of 1/256", "bytes", (Bar(2.3),)),
    Figure("sealed.uniform", "disk, a sealed point: uniform random", "bytes", (Bar(8.2),)),
    Figure("sealing.cpu", "sealing a point, CPU", "ns", (Bar(150),)),
    Figure("sealed.histogram.100", "in the store: 10 sealed series × 100k, 100 samples", "ms", (Bar(2),)),
    Figure("sealed.histogram.2000", "in the store: 10 sealed series × 100k, 2000 samples", "ms", (Bar(8),)),
    Figure("sealed.histogram.6000", "in the store: 10 sealed series × 100k, 6000 samples", "ms", (Bar(15),)),
    Figure("sealed.raw", "in the store: page of 10k sealed points", "ms", (Bar(5),)),
    Figure("statistics", "statistics of 5,000 series", "ms", (Bar(50),)),
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

"""All figures of servers on Elasticsearch and MongoDB, each with its unit and its bars."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.figures import Bar, Figure, least

BULK = "Elasticsearch's own bulk"
BULKS = "Elasticsearch's own bulk, 4 at once"
SEARCH = "one search of Elasticsearch"
DELETION = "Elasticsearch's own delete by query"
COMPILING = "of that, to compile what it runs"
PLAIN = "a document each"
REPEATED = "the same, repeated"
ONE_SERVER = "one server"

#: The reads that are measured three times: repeated; the first time, by the server that has written the events; and the
#: first time after a restart of the server, when the node has none of it in memory either.
HISTOGRAMS = (
    Figure("histogram.100", "histogram of 10 series × 100k, 100 samples", "ms", (Bar(10),)),
    Figure("histogram.2000", "histogram of 10 series × 100k, 2000 samples", "ms", (Bar(20),)),
    Figure("histogram.6000", "histogram of 10 series × 100k, 6000 samples", "ms", (Bar(35),)),
)

FIGURES: tuple[Figure, ...] = (
    Figure("write.rate", "add_batch of 10k events, one client", "events/s", (least(200_000),)),
    Figure("write.cpu", "add_batch of 10k events, server CPU an event", "ns"),
    Figure("write.node", "add_batch of 10k events, Elasticsearch's CPU an event", "ns", (Bar(3_000),)),
    Figure("write.four", "add_batch of 10k events, 4 clients", "events/s", (least(200_000),)),
    Figure(
        "write.servers",
        "add_batch of 10k events, 4 clients of two servers",
        "events/s",
        (least(200_000), Bar(1, ONE_SERVER, at_least=True)),
    ),
    Figure("write.short", "add_batch of 100 events, one client", "events/s", (least(25_000),)),
    Figure("write.small", "add_batch of 10 events, median", "ms", (Bar(4),)),
    Figure("log.rate", "log lines in, 10k a batch, one client", "lines/s", (least(200_000),)),
    *HISTOGRAMS,
    *(Figure(f"first.{read.key}", f"first {read.name}", "ms", read.bars) for read in HISTOGRAMS),
    *(Figure(f"restarted.{read.key}", f"first {read.name}, after a restart", "ms") for read in HISTOGRAMS),
    Figure("raw", "raw page of 10k points", "ms", (Bar(20),)),
    Figure("log.newest", "log of 1 M lines, newest 100", "ms", (Bar(6),)),
    Figure("log.middle", "log of 1 M lines, 500 from the middle", "ms", (Bar(10),)),
    Figure("changes.idle", "1,000 tasks watched, asked once a second, nothing happens", "% of a core", (Bar(1),)),
    Figure("copy.points.there", "copy of 5 M points, folder to Elasticsearch", "points/s", (least(1_000_000),)),
    Figure("copy.points.back", "copy of 5 M points, Elasticsearch to folder", "points/s", (least(1_000_000),)),
    Figure("copy.lines.there", "copy of 1 M log lines, folder to Elasticsearch", "lines/s"),
    Figure("copy.lines.back", "copy of 1 M log lines, Elasticsearch to folder", "lines/s"),
    Figure("delete", "delete_for_task of 1 M points", "ms", (Bar(400),)),
    Figure("disk.losses", "disk, a scalar, compacted: losses, float32", "bytes", (Bar(6),)),
    Figure("disk.decimals", "disk, a scalar, compacted: rounded to four decimals", "bytes", (Bar(6),)),
    Figure("disk.cosine", "disk, a scalar, compacted: a cosine", "bytes", (Bar(6),)),
    Figure("disk.accuracies", "disk, a scalar, compacted: multiples of 1/256", "bytes", (Bar(6),)),
    Figure("disk.points", "disk, a scalar, compacted: normal random", "bytes", (Bar(8),)),
    Figure("disk.lines", "disk, a log line of 68 characters, compacted", "bytes", (Bar(25),)),
)

#: Figures of work that is done once for each copy. The keys begin so.
_BY_EACH_COPY = ("write.", "log.rate", "copy.points.there", "copy.lines.there", "delete")


def scaled(copies: int) -> list[Figure]:
    """The figures where each copy of all events is on a node of the same machine: writing is done so many times."""
    return [
        replace(one, bars=tuple(_scaled(bar, copies) for bar in one.bars)) if one.key.startswith(_BY_EACH_COPY) else one
        for one in FIGURES
    ]


def _scaled(bar: Bar, copies: int) -> Bar:
    """A bar beside another figure stays."""
    if bar.to is not None:
        return bar
    return replace(bar, limit=bar.limit / copies if bar.at_least else bar.limit * copies)

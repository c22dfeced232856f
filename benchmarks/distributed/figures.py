"""All figures of servers on Elasticsearch and MongoDB, each with its unit and its bars."""

from __future__ import annotations

from benchmarks.figures import Bar, Figure, least

BULK = "Elasticsearch's own bulk"
BULKS = "Elasticsearch's own bulk, 4 at once"
NODE = "Elasticsearch's CPU"
SEARCH = "one search of Elasticsearch"
REPEATED = "the same, repeated"
ONE_SERVER = "one server"

#: The reads that are measured twice: repeated, and after the node's cache was cleared.
HISTOGRAMS = (
    Figure("histogram.100", "histogram of 10 series × 100k, 100 samples", "ms", (Bar(15),)),
    Figure("histogram.2000", "histogram of 10 series × 100k, 2000 samples", "ms", (Bar(60),)),
    Figure("histogram.6000", "histogram of 10 series × 100k, 6000 samples", "ms", (Bar(150),)),
)

FIGURES: tuple[Figure, ...] = (
    Figure("write.rate", "add_batch of 10k events, one client", "events/s", (least(40_000),)),
    Figure("write.cpu", "add_batch of 10k events, server CPU an event", "ns"),
    Figure("write.four", "add_batch of 10k events, 4 clients", "events/s"),
    Figure("write.servers", "add_batch of 10k events, 4 clients of two servers", "events/s"),
    Figure("write.small", "add_batch of 10 events, median", "ms", (Bar(8),)),
    Figure("log.rate", "log lines in, 10k a batch, one client", "lines/s"),
    *HISTOGRAMS,
    *(Figure(f"first.{read.key}", f"first {read.name}", "ms", read.bars) for read in HISTOGRAMS),
    Figure("raw", "raw page of 10k points", "ms"),
    Figure("log.newest", "log of 1 M lines, newest 100", "ms"),
    Figure("log.middle", "log of 1 M lines, 500 from the middle", "ms"),
    Figure("changes.idle", "1,000 tasks watched, asked once a second, nothing happens", "% of a core", (Bar(1),)),
    Figure("delete", "delete_for_task of 500k points", "ms"),
    Figure("disk.points", "disk, a scalar, merged", "bytes", (Bar(45),)),
    Figure("disk.lines", "disk, a log line of 68 characters, merged", "bytes"),
)

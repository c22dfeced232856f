"""Which series are the SDK's resource monitor's, or OpenTelemetry's of machines.

Their iterations say nothing of how far a task has come: they are seconds since its start, until it reports something.

Of several nodes on one task, those beyond the first add their rank (`:monitor:gpu:rank1`), or each reports a metric for
every resource, with a variant for itself (`:monitor:cpu_usage` and `rank 1`), as `CLEARML_MULTI_NODE_SINGLE_TASK` says.
"""

from __future__ import annotations

import re

PREFIX = ":monitor:"
#: How the metrics of OpenTelemetry begin whose points have no step.
OTEL = ":monitor:otel:"

_NODE = re.compile(r":monitor:(?:(?:machine|gpu)(?::rank[0-9]+)?|otel:.+)", re.DOTALL)
_RANK = re.compile(r"rank [0-9]+")


def is_monitor(metric: str, variant: str) -> bool:
    """Whether a monitor of resources reports the series."""
    return metric.startswith(PREFIX) and (_NODE.fullmatch(metric) or _RANK.fullmatch(variant)) is not None

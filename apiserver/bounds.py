"""The limits of a server's parts, together. Those that an operator may set are in `settings.py`."""

from __future__ import annotations

from dataclasses import dataclass, field

from apiserver.live.bounds import LiveBounds
from apiserver.services.last_metrics import LastMetricsBounds


@dataclass(frozen=True, slots=True)
class Bounds:
    """What each part of a server is given, when `create_app` puts it together."""

    last_metrics: LastMetricsBounds = field(default_factory=LastMetricsBounds)
    live: LiveBounds = field(default_factory=LiveBounds)

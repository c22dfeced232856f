"""Numbers of this process as of now, which its parts add to `/metrics`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Gauge = Callable[[], float]
#: By name, what a number means, and how to get it.
Gauges = Mapping[str, tuple[str, Gauge]]

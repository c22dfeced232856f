"""What copies move: the columns of whole series, as one store answers them and another one keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from apiserver.stores.events.columns.names import Name
from apiserver.stores.events.columns.points import Points

#: Bytes of memory that the log lines of a part take, about.
LINES_AT_A_TIME = 16 * 2**20


class WholePoints(NamedTuple):
    """Points of one series, at least one. `workers` has the names that their numbers stand for, and perhaps others."""

    series: Name
    points: Points
    workers: Sequence[str]

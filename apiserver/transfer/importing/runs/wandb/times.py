"""Times of W&B, as epoch seconds."""

from __future__ import annotations

from apiserver.transfer.importing.runs.times import of_number
from apiserver.transfer.importing.runs.wandb.messages import Timestamp


def believed_seconds(number: float) -> float | None:
    """The epoch seconds of a number; None if it is no time that can be believed."""
    millis = of_number(number)
    return None if millis is None else millis / 1000


def seconds_of(stamp: Timestamp) -> float:
    return stamp.seconds + stamp.nanos / 1e9

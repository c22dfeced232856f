"""What an example is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an endpoint that succeeds."""

    endpoint: str
    request: Mapping[str, Any] | tuple[Mapping[str, Any], ...] = field(default_factory=dict)
    """The body; of a batch, its lines."""
    keep: Mapping[str, str] = field(default_factory=dict)
    """Variables for later calls, and where their values are in the answer's `data`, with dots between names."""

    @property
    def service(self) -> str:
        """The endpoint's service."""
        return self.endpoint.partition(".")[0]

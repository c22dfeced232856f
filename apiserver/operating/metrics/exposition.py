"""Writes numbers in the text formats that Prometheus reads: OpenMetrics 1.0, and its older format 0.0.4."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PLAIN = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str]


@dataclass(slots=True)
class Family:
    """Numbers of one name. `type`: counter, gauge, histogram or info. A sample is a suffix, labels and a value."""

    name: str
    type: str
    help: str
    samples: list[tuple[str, Labels, float]] = field(default_factory=list)

    def add(self, value: float, suffix: str = "", **labels: str) -> None:
        """Add a sample. Counters have the suffix `_total`, the others usually none."""
        self.samples.append((suffix or ("_total" if self.type == "counter" else ""), labels, value))


def text(families: Iterable[Family], *, openmetrics: bool) -> bytes:
    """The families in OpenMetrics, or in the older format."""
    lines = []
    for family in families:
        # In the older format, a counter is called by the whole name of its samples, and there is no info.
        name = family.name
        type = family.type
        if not openmetrics and type == "counter":
            name += "_total"
        if not openmetrics and type == "info":
            name, type = f"{name}_info", "gauge"
        lines += [f"# TYPE {name} {type}", f"# HELP {name} {_escaped(family.help)}"]
        lines += [
            f"{family.name}{suffix}{_labels(labels)} {_number(value)}" for suffix, labels, value in family.samples
        ]
    return "\n".join([*lines, *(["# EOF"] if openmetrics else []), ""]).encode()


def is_openmetrics(accept: str) -> bool:
    """Whether the client asks for OpenMetrics."""
    return "application/openmetrics-text" in accept


def _labels(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}" if labels else ""


def _escaped(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    return escaped.encode("utf-8", "replace").decode()


def _number(value: float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return repr(value)

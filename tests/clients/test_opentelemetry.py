"""OpenTelemetry's SDK sends metrics of every kind, as the guide says."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from docs.site.pages import DOCS
from tests.docs.test_tutorial import Block, blocks
from tests.harness import PATIENCE, Served

#: Where `make check` installs it.
PYTHON = Path(__file__).parents[2] / ".venv-readers" / "bin" / "python"

_EVERY_KIND = """
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import Observation
from opentelemetry.sdk.metrics import Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import MetricExportResult, PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View
import logging, sys

class Exporter(OTLPMetricExporter):
    def export(self, *args, **named):
        result = super().export(*args, **named)
        assert result is MetricExportResult.SUCCESS
        return result

exporter = Exporter(compression=Compression[sys.argv[1]])
views = [View(instrument_name="exponential", aggregation=ExponentialBucketHistogramAggregation())]
provider = MeterProvider([PeriodicExportingMetricReader(exporter)], views=views)
meter = provider.get_meter("m")
meter.create_counter("counter").add(2**53, {"step": 1, "list": [1, 2], "ok": True, "x": 0.5, "text": "ü, =\\""})
meter.create_up_down_counter("updown").add(-3, {"step": 1})
meter.create_observable_gauge("observed", [lambda options: [Observation(5e-324, {"step": 1})]])
for name in ("explicit", "exponential"):
    histogram = meter.create_histogram(name)
    for value in (1, 2, 6):
        histogram.record(value, {"step": 1, "op": "read"})
provider.shutdown()
"""


def _python() -> Path:
    if not PYTHON.exists() or not list(PYTHON.parents[1].glob("lib/python3*/site-packages/opentelemetry/sdk")):
        pytest.skip("opentelemetry-sdk is not installed: 'make check' installs it")
    return PYTHON


def _task(server: Served) -> str:
    id: str = server.call("tasks.create", {"name": "train", "type": "training"})["id"]
    return id


def _run(server: Served, task: str, folder: Path, code: str) -> str:
    """What a shell prints of `code`, in which `python` is that with OpenTelemetry."""
    environment = {"PATH": f"{_python().parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)}
    environment |= {"KEY": server.key, "SECRET": server.secret, "TASK": task}
    shell = ["bash", "-euo", "pipefail", "-c", code.replace("http://127.0.0.1:8008", server.api_url)]
    ended = subprocess.run(
        shell, cwd=folder, env=environment, check=True, capture_output=True, text=True, timeout=PATIENCE
    )
    assert ended.stderr == "" or "curl" in code, ended.stderr
    return ended.stdout


def _guide(language: str, word: str) -> Block:
    page = blocks(DOCS / "guides" / "opentelemetry.md")
    (found,) = [one for one in page if one.language == language and word in one.text]
    return found


def _points(server: Served, task: str) -> dict[tuple[str, str], list[Any]]:
    """By metric and variant, the iterations and values."""
    found: dict[tuple[str, str], list[Any]] = {}
    with server.client() as client:
        for line in client.get(f"/data/tasks/{task}/scalars.ndjson").text.splitlines():
            row = json.loads(line)
            found.setdefault((row["metric"], row["variant"]), []).append((row["iter"], row["value"]))
    return found


def test_the_guide_runs(server: Served, tmp_path: Path) -> None:
    task = _task(server)
    script = _guide("python", "MeterProvider")
    (tmp_path / script.title).write_text(script.text, "utf-8")
    _run(server, task, tmp_path, _guide("sh", "send.py").text)
    assert json.loads(_run(server, task, tmp_path, _guide("sh", "curl").text)) == {}
    points = _points(server, task)
    assert points.pop(("train.loss", "value")) == [(0, 1), (1, 0.5), (2, 1 / 3)]
    ((_, power),) = points.pop((":monitor:otel:gpu.power", "gpu=0"))
    ((_, temperature),) = points.pop((":monitor:otel:room.temperature", "value"))
    assert (power, temperature) == (250, 21.5)
    assert points == {}


@pytest.mark.parametrize("compression", ["NoCompression", "Gzip", "Deflate"])
def test_every_kind_arrives(server: Served, tmp_path: Path, compression: str) -> None:
    task = _task(server)
    (tmp_path / "kinds.py").write_text(_EVERY_KIND, "utf-8")
    variables = _guide("sh", "send.py").text.replace("python send.py", f"python kinds.py {compression}")
    _run(server, task, tmp_path, variables)
    points = _points(server, task)
    assert points.pop(("counter", 'list=[1,2], ok=true, text="ü, =\\"", x=0.5')) == [(1, 2**53)]
    assert points.pop(("updown", "value")) == [(1, -3)]
    assert points.pop(("observed", "value")) == [(1, 5e-324)]
    for name in ("explicit", "exponential"):
        for figure, value in (("count", 3), ("sum", 9), ("min", 1), ("max", 6), ("mean", 3)):
            assert points.pop((name, f"{figure}, op=read")) == [(1, value)]
    assert points == {}

"""Reads one record of an event file by itself: text, images, histograms, hyperparameters, and scalars of any form.

A summary's value is of the kind that its plugin says, or that its field has. A plugin is named only with the first
value of a tag, so it is remembered. What is of no known kind is named.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from apiserver.common.protobuf_wire import Malformed
from apiserver.events.model import Float64Array
from apiserver.transfer.importing.runs.model import (
    Figure,
    File,
    Image,
    Line,
    Part,
    Points,
    Problem,
    Run,
    Unmapped,
    bars,
    names_of,
)
from apiserver.transfer.importing.runs.protobuf import parsed, text, unknown
from apiserver.transfer.importing.runs.tensorboard.messages import (
    Event,
    Histogram,
    Hyperparameters,
    Parameter,
    Tensor,
    Value,
)
from apiserver.transfer.importing.runs.tensorboard.restarts import byte_of
from apiserver.transfer.importing.runs.tensorboard.times import Times, seconds_of

#: Fields of an event that have no place here.
_OTHER_EVENTS = {"graph_def": "graph", "tagged_run_metadata": "run metadata", "meta_graph_def": "meta graph"}
#: By its number, how a session of a program, and one of hparams, goes on.
_CHECKPOINT = 3
_STATUSES = {1: "completed", 2: "failed", 3: "in_progress"}
#: Types of tensors.
_STRING, _BFLOAT16, _HALF = 7, 14, 19
#: By type, the form of a tensor's numbers in its content, and the field that has them otherwise.
_NUMBERS = {
    **{1: ("<f4", "float_val"), 2: ("<f8", "double_val"), _BFLOAT16: ("<u2", "half_val"), _HALF: ("<u2", "half_val")},
    **{3: ("<i4", "int_val"), 4: ("u1", "int_val"), 5: ("<i2", "int_val"), 6: ("i1", "int_val")},
    **{9: ("<i8", "int64_val"), 10: ("?", "bool_val")},
}
_SUFFIXES = {b"\x89PNG": ".png", b"\xff\xd8\xff": ".jpg", b"GIF8": ".gif", b"RIFF": ".webp", b"BM": ".bmp"}
#: Plugins whose values are known without them.
_PLAIN_PLUGINS = ("scalars", "text", "hparams")
#: The most numbers of a tensor that is a histogram: three for each bin.
_MOST_BINS = 100_000


@dataclass(slots=True)
class EventReader:
    """Reads the events of one file of a run."""

    run: Run
    file: str
    """What the file is called, for what is named."""
    times: Times
    names: Callable[[str], tuple[str, str]] = names_of
    """The metric and the variant of a tag."""
    keeps: Callable[[str, int, int], bool] = lambda tag, place, step: True
    """Whether the value of a tag, place and step is kept; a restart may take it back."""
    plugins: dict[str, str] = field(default_factory=dict)
    taken_back: int = 0
    """How many values a restart took back."""

    def parts(self, record: bytes, place: int) -> Iterator[Part]:
        """What the record at a place of the file holds."""
        try:
            yield from self._event(parsed(Event, record), place)
        except (Malformed, ValueError, OverflowError) as error:
            yield Problem(self.file, f"the record at byte {byte_of(place):,}: {error}")

    def _event(self, event: Event, place: int) -> Iterator[Part]:
        for name, kind in _OTHER_EVENTS.items():
            if event.HasField(name):
                yield Unmapped(kind, self.file)
        for number in unknown(event):
            yield Unmapped(f"field {number} of an event", self.file)
        if event.HasField("log_message"):
            yield Line(self._time("log", event.wall_time), text(event.log_message.message))
        if event.session_log.status == _CHECKPOINT:
            yield Unmapped("checkpoint", f"{self.file}: {text(event.session_log.checkpoint_path)}")
        for value in event.summary.value:
            tag = text(value.tag)
            plugin = self._plugin(tag, value)
            if plugin == "hparams":
                self._hyperparameters(parsed(Hyperparameters, value.metadata.plugin_data.content))
            elif self.keeps(tag, place, event.step):
                yield from self._value(value, tag, plugin, event.step, event.wall_time)
            else:
                self.taken_back += 1

    def _value(self, value: Value, tag: str, plugin: str, step: int, wall_time: float) -> Iterator[Part]:
        metric, variant = self.names(tag)
        time = self._time(f"series {metric}/{variant}", wall_time)
        if value.HasField("simple_value"):
            yield _point(metric, variant, step, time, value.simple_value)
        elif value.HasField("image"):
            yield _image(metric, variant, step, time, value.image.encoded_image_string)
        elif value.HasField("histo"):
            yield Figure(metric, variant, step, time, _histogram(tag, value.histo))
        elif value.HasField("tensor"):
            yield from self._tensor(plugin, tag, step, time, value.tensor)
        else:
            kind = "audio clip" if value.HasField("audio") else plugin or "value of no known kind"
            yield Unmapped(kind, f"{self.file}: {tag}")

    def _time(self, name: str, wall_time: float) -> int:
        """The timestamp of an event; the run has it, too."""
        seconds = self.times.one(name, wall_time)
        self.run.seen(seconds, seconds)
        return round(seconds * 1000)

    def _plugin(self, tag: str, value: Value) -> str:
        plugin = text(value.metadata.plugin_data.plugin_name)
        if plugin and plugin not in _PLAIN_PLUGINS:
            self.plugins[tag] = plugin
        return plugin or self.plugins.get(tag, "")

    def _tensor(self, plugin: str, tag: str, step: int, time: int, tensor: Tensor) -> Iterator[Part]:
        metric, variant = self.names(tag)
        if plugin == "images":
            for number, content in enumerate(tensor.string_val[2:]):  # width and height come first
                yield _image(metric, f"{variant}/{number}" if number else variant, step, time, content)
        elif tensor.dtype == _STRING and plugin in ("text", ""):
            for content in tensor.string_val:
                yield Line(time, text(content), metric=metric, variant=variant, iter=step)
        elif plugin == "histograms":
            bins = _numbers(tensor).reshape(-1, 3)
            if len(bins):
                edges = [*bins[:, 0].tolist(), float(bins[-1, 1])]
                yield Figure(metric, variant, step, time, bars(tag, edges, bins[:, 2].tolist()))
        elif plugin in ("scalars", "") and tensor.dtype != _STRING and (numbers := _numbers(tensor)).size == 1:
            yield _point(metric, variant, step, time, float(numbers[0]))
        else:
            yield Unmapped(plugin or "tensor", f"{self.file}: {tag}")

    def _hyperparameters(self, content: Hyperparameters) -> None:
        """Take the parameters of a session's start, and the status of its end."""
        parameters = self.run.parameters.setdefault("hparams", {})
        for entry in content.session_start_info.hparams:
            parameters[text(entry.key)] = _parameter(entry.value)
        start = float(seconds_of(np.array([content.session_start_info.start_time_secs]))[0])
        if math.isfinite(start):
            self.run.seen(start, start)
        if content.HasField("session_end_info"):
            self.run.status = _STATUSES.get(content.session_end_info.status, self.run.status)


def _parameter(value: Parameter) -> str:
    if value.HasField("string_value"):
        return text(value.string_value)
    if value.HasField("bool_value"):
        return str(value.bool_value)
    number = value.number_value
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


def _point(metric: str, variant: str, step: int, time: int, value: float) -> Points:
    return Points(metric, variant, np.array([step]), np.array([time]), np.array([value]))


def _image(metric: str, variant: str, step: int, time: int, content: bytes) -> Image:
    suffix = next((suffix for start, suffix in _SUFFIXES.items() if content.startswith(start)), ".png")
    return Image(metric, variant, step, time, suffix, File(len(content), lambda: io.BytesIO(content)))


def _histogram(tag: str, histogram: Histogram) -> dict[str, object]:
    """The figure of a histogram as older writers send it: upper limits of bins, the last ones endless, and counts."""
    limits, counts = histogram.bucket_limit, list(histogram.bucket)
    if len(limits) != len(counts):
        raise Malformed("a histogram has more limits than bins")
    least, greatest = histogram.min, histogram.max
    edges = [min(max(limit, least), greatest) for limit in (-math.inf, *limits)]
    used = [n for n, count in enumerate(counts) if count]
    first, last = (used[0], used[-1] + 1) if used else (0, 0)
    return bars(tag, edges[first : last + 1], counts[first:last])


def _numbers(tensor: Tensor) -> Float64Array:
    """The numbers of a tensor. Raises Malformed if they are of another type, or too many."""
    if tensor.dtype not in _NUMBERS:
        raise Malformed(f"a tensor has numbers of the type {tensor.dtype}")
    form, name = _NUMBERS[tensor.dtype]
    content = tensor.tensor_content
    numbers = np.frombuffer(content, form) if content else np.array(getattr(tensor, name)[: _MOST_BINS + 1])
    if numbers.size > _MOST_BINS:
        raise Malformed(f"a tensor has more than {_MOST_BINS:,} numbers")
    is_half = tensor.dtype in (_HALF, _BFLOAT16)
    return _half(numbers.astype(np.uint16), tensor.dtype) if is_half else numbers.astype(np.float64)


def _half(bits: npt.NDArray[np.uint16], kind: int) -> Float64Array:
    if kind == _HALF:
        return bits.view(np.float16).astype(np.float64)
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)

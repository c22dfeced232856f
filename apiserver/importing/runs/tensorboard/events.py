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

from apiserver.events.model import Float64Array
from apiserver.importing.runs.model import (
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
from apiserver.importing.runs.tensorboard.restarts import byte_of
from apiserver.importing.runs.tensorboard.times import Times, seconds_of
from apiserver.protobuf_wire import FIXED32, Malformed, Message

#: Fields of an event that have no place here.
_OTHER_EVENTS = {4: "graph", 8: "run metadata", 9: "meta graph"}
_EVENT_FIELDS = range(1, 11)
_CHECKPOINT = 3
#: By the number of a tensor's type: the form of its numbers, and the field that has them, if they are not packed.
_FLOATS = {1: ("<f4", 5), 2: ("<f8", 6)}
_INTEGERS = {3: ("<i4", 7), 4: ("u1", 7), 5: ("<i2", 7), 6: ("i1", 7), 9: ("<i8", 10), 10: ("?", 11)}
#: By its number, how a session of hparams has ended.
_STATUSES = {1: "completed", 2: "failed", 3: "in_progress"}
_STRING, _BFLOAT16, _HALF = 7, 14, 19
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
            yield from self._event(Message(record), place)
        except (Malformed, ValueError, OverflowError) as error:
            yield Problem(self.file, f"the record at byte {byte_of(place):,}: {error}")

    def _event(self, event: Message, place: int) -> Iterator[Part]:
        wall_time = event.float64(1)
        for number in event.numbers():
            if kind := _OTHER_EVENTS.get(number) or ("" if number in _EVENT_FIELDS else f"field {number} of an event"):
                yield Unmapped(kind, self.file)
        if 6 in event:
            yield Line(self._time("log", wall_time), event.message(6).text(2))
        if event.message(7).integer(1) == _CHECKPOINT:
            yield Unmapped("checkpoint", f"{self.file}: {event.message(7).text(2)}")
        for summary in event.messages(5):
            for value in summary.messages(1):
                tag = value.text(1)
                plugin = self._plugin(tag, value)
                if plugin == "hparams":
                    self._hyperparameters(value.message(9).message(1).message(2))
                elif self.keeps(tag, place, event.integer(2)):
                    yield from self._value(value, tag, plugin, event.integer(2), wall_time)
                else:
                    self.taken_back += 1

    def _value(self, value: Message, tag: str, plugin: str, step: int, wall_time: float) -> Iterator[Part]:
        metric, variant = self.names(tag)
        time = self._time(f"series {metric}/{variant}", wall_time)
        if 2 in value:
            yield _point(metric, variant, step, time, float(np.frombuffer(value.each(2, FIXED32)[-1], "<f4")[0]))
        elif 4 in value:
            yield _image(metric, variant, step, time, value.message(4).bytes(4))
        elif 5 in value:
            yield Figure(metric, variant, step, time, _histogram(tag, value.message(5)))
        elif 8 in value:
            yield from self._tensor(plugin, tag, step, time, value.message(8))
        else:
            yield Unmapped("audio clip" if 6 in value else plugin or "value of no known kind", f"{self.file}: {tag}")

    def _time(self, name: str, wall_time: float) -> int:
        """The timestamp of an event; the run has it, too."""
        seconds = self.times.one(name, wall_time)
        self.run.seen(seconds, seconds)
        return round(seconds * 1000)

    def _plugin(self, tag: str, value: Message) -> str:
        said = value.message(9).message(1).text(1) if 9 in value else ""
        if said and said not in _PLAIN_PLUGINS:
            self.plugins[tag] = said
        return said or self.plugins.get(tag, "")

    def _tensor(self, plugin: str, tag: str, step: int, time: int, tensor: Message) -> Iterator[Part]:
        metric, variant = self.names(tag)
        if plugin == "images":
            for number, content in enumerate(tensor.each(8)[2:]):  # width and height come first
                yield _image(metric, f"{variant}/{number}" if number else variant, step, time, content)
        elif tensor.integer(1) == _STRING and plugin in ("text", ""):
            for content in tensor.each(8):
                yield Line(time, content.decode(errors="replace"), metric=metric, variant=variant, iter=step)
        elif plugin == "histograms":
            bins = _numbers(tensor).reshape(-1, 3)
            if len(bins):
                edges = [*bins[:, 0].tolist(), float(bins[-1, 1])]
                yield Figure(metric, variant, step, time, bars(tag, edges, bins[:, 2].tolist()))
        elif plugin in ("scalars", "") and tensor.integer(1) != _STRING and (numbers := _numbers(tensor)).size == 1:
            yield _point(metric, variant, step, time, float(numbers[0]))
        else:
            yield Unmapped(plugin or "tensor", f"{self.file}: {tag}")

    def _hyperparameters(self, content: Message) -> None:
        """Take the parameters of a session's start, and the status of its end."""
        found = self.run.parameters.setdefault("hparams", {})
        for entry in content.message(3).messages(1):
            found[entry.text(1)] = _parameter(entry.message(2))
        start = float(seconds_of(np.array([content.message(3).float64(5)]))[0])
        if math.isfinite(start):
            self.run.seen(start, start)
        if 4 in content:
            self.run.status = _STATUSES.get(content.message(4).integer(1), self.run.status)


def _parameter(value: Message) -> str:
    """A value as JSON has it: a number (field 2), a text (3) or a truth (4)."""
    if 3 in value:
        return value.text(3)
    if 4 in value:
        return str(bool(value.integer(4)))
    number = value.float64(2)
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


def _point(metric: str, variant: str, step: int, time: int, value: float) -> Points:
    return Points(metric, variant, np.array([step]), np.array([time]), np.array([value]))


def _image(metric: str, variant: str, step: int, time: int, content: bytes) -> Image:
    suffix = next((suffix for start, suffix in _SUFFIXES.items() if content.startswith(start)), ".png")
    return Image(metric, variant, step, time, suffix, File(len(content), lambda: io.BytesIO(content)))


def _histogram(tag: str, histogram: Message) -> dict[str, object]:
    """The figure of a histogram as older writers send it: upper limits of bins, the last ones endless, and counts."""
    limits, counts = histogram.floats(6, "<f8").tolist(), histogram.floats(7, "<f8").tolist()
    least, greatest = histogram.float64(1), histogram.float64(2)
    if len(limits) != len(counts):
        raise Malformed("a histogram has more limits than bins")
    edges = [min(max(limit, least), greatest) for limit in (-math.inf, *limits)]
    used = [n for n, count in enumerate(counts) if count]
    first, last = (used[0], used[-1] + 1) if used else (0, 0)
    return bars(tag, edges[first : last + 1], counts[first:last])


def _numbers(tensor: Message) -> Float64Array:
    """The numbers of a tensor. Raises Malformed if they are of another type."""
    kind, content = tensor.integer(1), tensor.bytes(4)
    if kind in _FLOATS:
        form, number = _FLOATS[kind]
        found = np.frombuffer(content, form).astype(np.float64) if content else tensor.floats(number, form)
    elif kind in _INTEGERS:
        form, number = _INTEGERS[kind]
        packed = np.frombuffer(content, form) if content else np.array(tensor.integers(number), np.int64)
        found = packed.astype(np.float64)
    elif kind in (_HALF, _BFLOAT16):
        bits = np.frombuffer(content, "<u2") if content else np.array(tensor.integers(13), np.int64).astype(np.uint16)
        found = _half(bits.astype(np.uint16), kind)
    else:
        raise Malformed(f"a tensor has numbers of the type {kind}")
    if found.size > _MOST_BINS:
        raise Malformed(f"a tensor has {found.size:,} numbers")
    return found


def _half(bits: npt.NDArray[np.uint16], kind: int) -> Float64Array:
    if kind == _HALF:
        return bits.view(np.float16).astype(np.float64)
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)

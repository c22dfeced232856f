"""What readers are told, each event encoded once for all of them.

An event is a name and a JSON object. In a stream of server-sent events it is some lines, and an empty line ends it:

    event: scalars
    data: {"task":"8f1c","series":[["loss","train",90,99]],"count":1}
    id: q7Zk…

The id is the cursor. Only the last event of a chunk has one: who has read the chunk has been told all up to there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from apiserver.events.changes import OwnerChanges
from apiserver.events.model import EventType

#: The most series that an event names.
MOST_SERIES = 1000
#: The most bytes of what a newcomer is told of changes since it left. With more, it is told a `reset`.
MOST_BYTES = 256 * 2**10

#: What a stream says while nothing changes. It is an event, not a comment, because scripts of pages hear no comments.
ALIVE = b"event: alive\ndata: {}\n\n"


class Event(NamedTuple):
    """One event, encoded."""

    name: str
    data: bytes

    @classmethod
    def of(cls, name: str, data: Mapping[str, Any]) -> Event:
        # What orjson returns takes 4 KB, however few bytes it has. Events are kept, so they are copied.
        return cls(name, bytes(memoryview(orjson.dumps(data))))


class Chunk:
    """Events that are told together, and the cursor behind them; without one, more of what changed is still to come.

    An empty chunk says that the stream goes on, which keeps the connection alive.
    """

    __slots__ = ("_stream", "cursor", "events")

    def __init__(self, events: Sequence[Event], cursor: str | None) -> None:
        self.events = events
        self.cursor = cursor
        self._stream: bytes | None = None

    def stream(self) -> bytes:
        """The events as a stream of server-sent events. Many readers get the same bytes."""
        if self._stream is None:
            # Each event ends with an empty line, but the last one goes on with the id.
            events = [b"event: %b\ndata: %b\n" % (event.name.encode(), event.data) for event in self.events]
            if self.cursor is not None:
                self._stream = b"\n".join(events) + b"id: %b\n\n" % self.cursor.encode()
            else:
                self._stream = b"".join([event + b"\n" for event in events]) or ALIVE
        return self._stream

    def json(self) -> bytes:
        """The events as a JSON list of objects, each with its name as `event`."""
        return b"[%b]" % b",".join([b'{"event":"%b",%b' % (one.name.encode(), one.data[1:]) for one in self.events])


def reset(task: str | None) -> Event:
    """Whatever a reader knows of the task may be wrong; None: of all its tasks."""
    return Event.of("reset", {"task": task})


def gone(task: str) -> Event:
    """The task was deleted, or may not be read any more."""
    return Event.of("gone", {"task": task})


def end(reason: str) -> Event:
    """The stream ends."""
    return Event.of("end", {"reason": reason})


def changes(task: str, changed: OwnerChanges) -> list[Event]:
    """What changed of a task."""
    if changed.everything:
        return [reset(task)]
    scalars, samples = [], []
    for (type, metric, variant), ends in sorted(changed.series.items(), key=itemgetter(0)):
        if type is EventType.SCALAR:
            scalars.append([metric, variant, ends.least, ends.greatest])
        else:
            samples.append([metric, variant, ends.least, ends.greatest, type.value])
    events = [_series(name, task, series) for name, series in (("scalars", scalars), ("samples", samples)) if series]
    if changed.log_lines:
        events.append(Event.of("log", {"task": task, "count": changed.log_lines}))
    return events


def _series(name: str, task: str, series: Sequence[Any]) -> Event:
    """The series that changed, with their iterations. Too many are not named: any series may have changed then."""
    named = series if len(series) <= MOST_SERIES else None
    return Event.of(name, {"task": task, "series": named, "count": len(series)})

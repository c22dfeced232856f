"""What each event type is: the fields that clients send, and what the server keeps of them.

Each event type is one class. Parsing, checking and storing ask the class, so they need no lists of types. Scalars and
log lines are kept in columns. All other types are samples, kept as one document each: a sample's class says in
`content` what its document holds.

For example, a client sends `{"type": "plot", "task": "t1", "metric": "ROC", "variant": "val", "plot_str": "{…}"}`.
This becomes a `SentPlot`. Its `content` is `{"key": None, "plot_str": "{…}", "plot_len": 3}`.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec

from apiserver.common import urls
from apiserver.events import figures
from apiserver.events.model import EventType, JsonObject
from apiserver.events.rejects import Reject

#: The milliseconds that have a date: the years 1 to 9999.
EARLIEST_TIMESTAMP, LATEST_TIMESTAMP = -62_135_596_800_000, 253_402_300_799_999

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Milliseconds = Annotated[int, msgspec.Meta(ge=EARLIEST_TIMESTAMP, le=LATEST_TIMESTAMP)]

#: A field whose every value fails, so that an event with it takes the slow path.
_Refused = Annotated[int, msgspec.Meta(ge=1, le=0)]

#: A field that the server itself adds to its answers. Clients may send it back; it is ignored.
_Ignored = msgspec.Raw
_IGNORED = msgspec.Raw()


class Extra(bytes):
    """The fields of an event that its type does not have, as JSON. Only the server makes it: msgspec refuses to."""


class SentEvent(msgspec.Struct, tag_field="type", gc=False, kw_only=True):
    """An event as a client sends it. `timestamp` is epoch milliseconds; None means "now".

    The SDK sends the first fields in this order. A decoder looks for each field behind the last one that it found.
    """

    timestamp: Milliseconds | None = None
    task: str = ""
    variant: str = ""
    metric: str = ""
    allow_locked: bool = False
    model_event: bool = False
    model: str | None = None
    worker: str = ""


class SentScalar(SentEvent, tag=EventType.SCALAR.value, gc=False, kw_only=True):
    """A point of a scalar series. Without a value it is NaN. Fields that it does not have are passed over.

    But `ts`, the old name of `timestamp`, must not be: only the slow path knows it.
    """

    iter: Int64 = 0
    value: float | None = None
    x_axis_label: str | None = None
    ts: _Refused | None = None


class _SentWhole(SentEvent, gc=False, kw_only=True, forbid_unknown_fields=True):
    """An event that is kept with all its fields. Fields that its class does not have take the slow path."""

    method: Literal["get", "post", "put"] = "get"  # the SDK sends it with every event; it means nothing here


class SentLog(_SentWhole, tag=EventType.LOG.value, gc=False, kw_only=True):
    """A piece of console output: one line or several.

    The object is small on purpose. Larger ones shared blocks of memory with their messages, which are kept longer. That
    left holes in these blocks, and reading took a third longer. So `extra`, which few log lines have, is in OddSentLog.
    """

    iter: Int64 | None = None
    level: str | None = None
    msg: str = ""


class OddSentLog(SentLog, tag=EventType.LOG.value, gc=False, kw_only=True):
    """Console output that took the slow path."""

    extra: Extra | None = None


class SentSample(_SentWhole, gc=False, kw_only=True):
    """A plot, an image or a vector. A series may have several in one iteration, with different keys."""

    type: ClassVar[EventType]
    addresses: ClassVar[str | None] = None
    """The field that holds addresses of files."""

    written: _Ignored = msgspec.field(name="@timestamp", default=_IGNORED)
    extra: Extra | None = None
    iter: Int64 = 0
    key: str | None = None

    def check(self) -> None:
        """Raise Reject if the server must not keep this event."""

    def content(self) -> JsonObject:
        """The fields of the document that only this type has. None stands for a field that was not sent."""
        raise NotImplementedError


class SentVector(SentSample, tag=EventType.VECTOR.value, gc=False, kw_only=True):
    """A vector of numbers, in `values` or, from older clients, in `value`."""

    type = EventType.VECTOR

    values: list[float | None] | None = None
    value: list[float | None] | None = None

    def content(self) -> JsonObject:
        return {"key": self.key, "value": self.values or self.value or []}


class SentImage(SentSample, tag=EventType.IMAGE.value, gc=False, kw_only=True):
    """An image, or other media, that lies at `url`."""

    type = EventType.IMAGE
    addresses = "url"

    url: str | None = None

    def check(self) -> None:
        if self.url:
            check_url(self.url)

    def content(self) -> JsonObject:
        return {"key": self.key, "url": self.url}


class SentPlot(SentSample, tag=EventType.PLOT.value, gc=False, kw_only=True):
    """A figure of Plotly, as JSON text."""

    type = EventType.PLOT
    addresses = "plot_str"

    plot_str: str | None = None
    skip_validation: bool = False
    plot_len: _Ignored = _IGNORED
    source_urls: _Ignored = _IGNORED
    valid_plot: _Ignored = _IGNORED

    def content(self) -> JsonObject:
        facts = {} if self.plot_str is None else figures.facts(self.plot_str, skip_validation=self.skip_validation)
        return {"key": self.key, "plot_str": self.plot_str, **facts}


AnySentSample = SentVector | SentImage | SentPlot
#: The class of each event that parses at once, and of each event of the slow path.
PlainEvent = SentScalar | SentLog | AnySentSample
OddEvent = SentScalar | OddSentLog | AnySentSample

#: By sample type, the field that holds addresses of files.
ADDRESSES: dict[EventType, str] = {sent.type: sent.addresses for sent in AnySentSample.__args__ if sent.addresses}


def check_url(url: str) -> None:
    """Raise Reject for an address that a page must not show as a picture, or link to."""
    if not urls.is_of_file(url) and not urls.is_name_of_file(url):
        raise Reject(f"field 'url' must be {urls.FILE_ADDRESSES}, or the name of a file", field="url")

"""The formats in which tables are answered, and how a request names one: by the address's ending, or in `Accept`."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from apiserver.common.extras import installed_by
from apiserver.rpc.errors import ApiError


class _Described(NamedTuple):
    ending: str
    media_type: str
    other_media_types: tuple[str, ...] = ()
    """Clients ask for the format by these, too."""
    needs_extra: bool = False


class Format(Enum):
    """A format. The first is the answer for those who do not say what they want."""

    JSON = _Described("json", "application/json")
    NDJSON = _Described("ndjson", "application/x-ndjson", ("application/jsonl", "application/json-lines"))
    CSV = _Described("csv", "text/csv; charset=utf-8")
    ARROW = _Described("arrow", "application/vnd.apache.arrow.stream", needs_extra=True)
    PARQUET = _Described("parquet", "application/vnd.apache.parquet", ("application/x-parquet",), needs_extra=True)
    BINARY = _Described("bin", "application/octet-stream")
    TEXT = _Described("txt", "text/plain; charset=utf-8")

    @property
    def ending(self) -> str:
        """The ending of a file in the format, without the dot."""
        return self.value.ending

    @property
    def media_type(self) -> str:
        """The Content-Type of an answer."""
        return self.value.media_type

    @property
    def needs_extra(self) -> bool:
        """Whether an optional package has to be installed."""
        return self.value.needs_extra


BY_ENDING = {format.ending: format for format in Format}
_BY_MEDIA_TYPE = {
    media_type.partition(";")[0]: format
    for format in Format
    for media_type in (format.media_type, *format.value.other_media_types)
}
#: What a page in a browser asks for; it shows JSON.
_ANYTHING = ("*/*", "text/html")


def chosen(ending: str | None, accept: str, possible: tuple[Format, ...]) -> Format:
    """The format that a request asks for. 404 for an unknown ending, 406 if nothing in `accept` is possible."""
    if ending is not None:
        format = BY_ENDING.get(ending)
        if format not in possible:
            raise _no_format(404, f".{ending[:20]}", possible)
        return format
    asked = sorted(filter(None, map(_weighed, accept.split(","))), key=lambda one: -one[1]) or [("*/*", 1.0)]
    for media_type, _ in asked:
        if media_type in _ANYTHING:
            return possible[0]
        if (format := _BY_MEDIA_TYPE.get(media_type)) in possible:
            return format
        if media_type.endswith("/*"):
            for format in possible:
                if format.media_type.startswith(media_type[:-1]):
                    return format
    raise _no_format(406, accept[:100], possible)


def _weighed(item: str) -> tuple[str, float] | None:
    """A media type in Accept and its weight, such as 0.5 in `text/csv;q=0.5`; None if it is not wanted."""
    media_type, *parameters = (part.strip() for part in item.split(";"))
    weight = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            try:
                weight = float(value)
            except ValueError:
                weight = 0.0
    return (media_type.lower(), weight) if media_type and weight > 0 else None


def _no_format(code: int, asked: str, possible: tuple[Format, ...]) -> ApiError:
    endings = ", ".join(f".{format.ending}" for format in possible)
    return ApiError(code, 0, f"There is no format '{asked}' here: let the address end in one of {endings}")


def missing_extra(format: Format) -> ApiError:
    """406: the optional package for the format is not installed."""
    return ApiError(
        406,
        0,
        f"This server cannot make .{format.ending} without an optional package. Whoever runs it has to "
        f"{installed_by('parquet')}. .csv needs nothing.",
    )


#: The formats of every table. Logs have TEXT, too, and curves BINARY.
TABLES: tuple[Format, ...] = (Format.JSON, Format.NDJSON, Format.CSV, Format.ARROW, Format.PARQUET)

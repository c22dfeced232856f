"""Makes images and other media, captions and plots of the history's values with a `_type`.

- `image-file` has `path`, `caption`, `masks`, `boxes`; `audio-file`, `video-file` and `html-file` are alike;
- `images/separated` has `filenames`, `captions`, `all_masks`, `all_boxes`;
- `audio` has `audio`, a list of `audio-file`; `videos` and `html` are alike;
- `histogram` has its bins, `table-file` and `plotly-file` the `path` of a JSON file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from apiserver.common.protobuf_wire import Malformed
from apiserver.transfer.importing.missing import Reason
from apiserver.transfer.importing.runs.folders import file_at, small_file
from apiserver.transfer.importing.runs.model import Figure, Image, Line, Part, Problem, Unmapped, bars, names_of
from apiserver.transfer.importing.runs.wandb.files import RunFiles
from apiserver.transfer.importing.runs.wandb.history import of_json

_FILES = ("image-file", "audio-file", "video-file", "html-file")
_LISTS = ("audio", "videos", "html")
_IMAGES = ("images/separated", "images")
_DRAWN = {"mask": "masks", "box": "boxes"}
_MOST_BINS = 100_000
#: A plot cannot be larger.
_MOST_BYTES = 15 * 2**20


class At(NamedTuple):
    """Where a value is: the series, its `_step`, and its time."""

    name: str
    step: int
    timestamp: int

    def __str__(self) -> str:
        return f"{self.name} at step {self.step}"


def media(value: dict[str, Any], at: At, files: RunFiles) -> Iterator[Part]:
    """The parts that a value becomes. Raises ValueError and others for one that is not as it should be."""
    kind = value["_type"]
    if kind == "histogram":
        yield _figure(at, _histogram(at.name, value))
    elif kind in _FILES:
        yield from _medium(value, at, at.name, files)
    elif kind in (*_LISTS, *_IMAGES):
        all_of_them = _images(value) if kind in _IMAGES else value[kind]
        for number, one in enumerate(all_of_them):
            yield from _medium(one, at, f"{at.name}/{number}" if len(all_of_them) > 1 else at.name, files)
    elif kind in ("table-file", "plotly-file"):
        yield _plot(value, at, files)
    else:
        yield Unmapped(str(kind), str(at))


def _images(value: dict[str, Any]) -> list[dict[str, Any]]:
    """Each image of a list as one alone."""
    paths = value.get("filenames") or [value.get("path")]
    if not isinstance(paths, list):
        raise Malformed("the images have no files")
    columns = {"caption": value.get("captions"), "masks": value.get("all_masks"), "boxes": value.get("all_boxes")}
    return [
        {"path": path, **{name: column[at] for name, column in columns.items() if column and at < len(column)}}
        for at, path in enumerate(paths)
    ]


def _medium(value: dict[str, Any], at: At, name: str, files: RunFiles) -> Iterator[Part]:
    """A file that a page can show, and its caption as a line of the log."""
    metric, variant = names_of(at.name)
    variant += name.removeprefix(at.name)
    path = files.at(str(value.get("path")))
    if path is None:
        yield _absent(value, at)
    else:
        yield Image(metric, variant, at.step, at.timestamp, path.suffix, file_at(path))
    if caption := value.get("caption"):
        yield Line(at.timestamp, str(caption), metric=metric, variant=variant, iter=at.step)
    for kind, field in _DRAWN.items():
        for drawn in value.get(field) or ():
            yield Unmapped(f"{kind} of an image", f"{drawn} of {at._replace(name=name)}")


def _plot(value: dict[str, Any], at: At, files: RunFiles) -> Part:
    """A table, or a figure of Plotly."""
    path = files.at(str(value.get("path")))
    if path is None:
        return _absent(value, at)
    if path.stat().st_size > _MOST_BYTES:
        return Problem(str(at), f"a plot of more than {_MOST_BYTES:,} bytes is too large", Reason.OVER_LIMIT)
    content = _read(path)
    return _figure(at, _table(at.name, content) if value["_type"] == "table-file" else content)


def _read(path: Path) -> dict[str, Any]:
    content = of_json(small_file(path, _MOST_BYTES))
    if not isinstance(content, dict):
        raise Malformed(f"'{path.name}' is no object of JSON")
    return content


def _figure(at: At, figure: dict[str, Any]) -> Figure:
    return Figure(*names_of(at.name), at.step, at.timestamp, figure)


def _absent(value: dict[str, Any], at: At) -> Problem:
    return Problem(str(at), f"there is no file '{value.get('path')}' in the run's folder", Reason.ABSENT)


def _table(name: str, table: dict[str, Any]) -> dict[str, Any]:
    """The figure of a table."""
    columns = [str(column) for column in table["columns"]]
    rows = [[_cell(cell) for cell in row] for row in table["data"]]
    cells = [[row[at] if at < len(row) else None for row in rows] for at in range(len(columns))]
    trace = {"type": "table", "header": {"values": columns}, "cells": {"values": cells}}
    return {"data": [trace], "layout": {"title": name}}


def _cell(cell: Any) -> Any:
    """What a cell shows: of media their file."""
    if isinstance(cell, dict) and "path" in cell:
        return str(cell["path"])
    return orjson.dumps(cell).decode() if isinstance(cell, dict | list) else cell


def _histogram(name: str, value: dict[str, Any]) -> dict[str, Any]:
    """The figure of a histogram, whose bins are told by their edges or packed as the least, the width, the number."""
    counts = value.get("values")
    packed = value.get("packedBins") or {}
    edges = value.get("bins") or [
        packed["min"] + packed["size"] * n for n in range(min(_MOST_BINS, packed["count"]) + 1)
    ]
    if not isinstance(counts, list) or len(edges) != len(counts) + 1 or len(counts) > _MOST_BINS:
        raise Malformed("a histogram has not one edge more than bins")
    return bars(name, [float(one) for one in edges], [float(one) for one in counts])

"""What a plot's text tells about the plot: its length, the images that it shows, and whether it is a figure at all."""

from __future__ import annotations

import re
from typing import Any

import orjson

from apiserver.events.model import JsonObject
from apiserver.json_structure import has_more_values

#: How many values a line may hold in all its objects and arrays. A figure with more is not parsed.
MOST_VALUES = 500_000
_HAS_SOURCE = re.compile(r'"source"')


def facts(text: str, *, skip_validation: bool) -> JsonObject:
    """`plot_len`; `source_urls` of the images that a plot shows; `valid_plot` is False if its text is not JSON.

    A text that begins with "{" counts as a figure. It is parsed only if it may show images, and not if it holds too
    many values. Plotly writes NaN, which is not JSON but which Plotly in browsers reads. So a figure is never invalid.
    """
    found: JsonObject = {"plot_len": len(text)}
    is_figure = skip_validation or text.lstrip().startswith("{")
    if is_figure and not _HAS_SOURCE.search(text):
        return found
    if len(text) > MOST_VALUES and has_more_values(text.encode("utf-8", "replace"), MOST_VALUES):
        return found
    try:
        sources = _source_urls(orjson.loads(text))
    except orjson.JSONDecodeError:
        return found if is_figure else {**found, "valid_plot": False}
    return {**found, "source_urls": sources} if sources else found


def _source_urls(plot: Any) -> list[str]:
    layout = plot.get("layout") if isinstance(plot, dict) else None
    images = layout.get("images") if isinstance(layout, dict) else None
    if not isinstance(images, list):
        return []
    sources = (image.get("source") for image in images if isinstance(image, dict))
    return [source for source in sources if isinstance(source, str)]

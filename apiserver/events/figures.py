"""What a plot's text tells about the plot: its length, the images that it shows, and whether it is a figure at all.

Python's `json` writes NaN and infinities as words, which JSON does not have. The SDK sends them for confusion matrices,
surfaces and tables.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from apiserver.common.json_structure import has_more_values
from apiserver.events.model import JsonObject

#: How many values a line may hold in all its objects and arrays. A figure with more is not parsed.
MOST_VALUES = 500_000
_HAS_SOURCE = re.compile(r'"source"')
#: A text, or a word for a number. An unfinished text is matched, too, so that no character is looked at twice.
_TEXT_OR_WORD = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|NaN|Infinity|-Infinity', re.DOTALL)


def facts(text: str, *, skip_validation: bool) -> JsonObject:
    """`plot_len`; `source_urls` of the images that a plot shows; `valid_plot` is False if its text is not JSON.

    A text that begins with "{" counts as a figure. It is parsed only if it may show images, and not if it holds too
    many values. A figure is never invalid: what Python writes as JSON is none if it has NaN.
    """
    plot: JsonObject = {"plot_len": len(text)}
    is_figure = skip_validation or text.lstrip().startswith("{")
    if is_figure and not _HAS_SOURCE.search(text):
        return plot
    if len(text) > MOST_VALUES and has_more_values(text.encode("utf-8", "replace"), MOST_VALUES):
        return plot
    try:
        sources = _source_urls(orjson.loads(without_nan(text)))
    except orjson.JSONDecodeError:
        return plot if is_figure else {**plot, "valid_plot": False}
    return {**plot, "source_urls": sources} if sources else plot


def without_nan(text: str) -> str:
    """A figure as Python writes it, with null in place of NaN and infinities: `[NaN, "NaN"]` → `[null, "NaN"]`."""
    if "NaN" not in text and "Infinity" not in text:
        return text
    return _TEXT_OR_WORD.sub(lambda found: found[0] if found[0][0] == '"' else "null", text)


def _source_urls(plot: Any) -> list[str]:
    layout = plot.get("layout") if isinstance(plot, dict) else None
    images = layout.get("images") if isinstance(layout, dict) else None
    if not isinstance(images, list):
        return []
    sources = (image.get("source") for image in images if isinstance(image, dict))
    return [source for source in sources if isinstance(source, str)]

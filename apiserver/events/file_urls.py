"""The URLs of files that samples show."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from apiserver.events.model import Sample


def urls_in(samples: Sequence[Sample]) -> set[str]:
    """The URLs of images, and of the images in plots."""
    urls: set[str] = set()
    for sample in samples:
        if b"url" in sample.document:
            event = orjson.loads(sample.document)
            urls.update(url for url in event.get("source_urls") or [event.get("url")] if url)
    return urls

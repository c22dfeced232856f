"""Links for the pictures in plots: the web UI gets them as signed URLs, which open without a login.

Plotly has the browser load a plot's pictures without the cookie (`crossOrigin = "anonymous"`), so a file server on
another port or host would refuse them. Other callers send their credentials, and get the URLs as they were reported.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Awaitable, Callable, Sequence

import orjson

from apiserver.events.model import Sample
from apiserver.services.backend import Call

#: A picture's URL in a figure, which is JSON inside of a plot's JSON: {"plot_str": "{\"source\": \"http://…\"}"}. A URL
#: with escapes (`\\u0026`) is not replaced: the SDK uploads no files with such URLs.
_SOURCE = re.compile(rb'(?:(?<=\\"source\\":\\")|(?<=\\"source\\": \\"))https?://[^"\\\s]++(?=\\")')

#: How many links one answer may have. Each costs 20 µs to sign; further pictures keep their URLs.
MOST = 500

PlotEncoder = Callable[[Sequence[Sample]], Awaitable[list[orjson.Fragment]]]

#: Plots of more bytes than this are searched in a thread.
_LARGE = 2**20


async def plot_encoder(call: Call) -> PlotEncoder:
    """A function that makes an answer's JSON of samples. For the web UI, known by its cookie, it signs picture URLs."""
    if not call.by_cookie or call.identity.grant.project is not None:  # a link would open files of any project
        return _as_they_are
    backend, company = call.backend, call.identity.company
    made = itertools.count()
    hosts = await backend.file_deletions.hosts_by(company, call.headers.get("host", ""))

    def link(url: re.Match[bytes]) -> bytes:
        if next(made) >= MOST:
            return url[0]
        return backend.file_links.link(url[0].decode(), company, hosts).encode()

    def linked(samples: Sequence[Sample]) -> list[orjson.Fragment]:
        return [orjson.Fragment(_SOURCE.sub(link, sample.document)) for sample in samples]

    async def encode(samples: Sequence[Sample]) -> list[orjson.Fragment]:
        large = sum([len(sample.document) for sample in samples]) > _LARGE
        return await asyncio.to_thread(linked, samples) if large else linked(samples)

    return encode


async def _as_they_are(samples: Sequence[Sample]) -> list[orjson.Fragment]:
    return [orjson.Fragment(sample.document) for sample in samples]

"""Plots that are pictures: the web UI gets their files' URLs as links that open without a login.

Plotly asks browsers for a plot's pictures without the cookie (`crossOrigin = "anonymous"`), so files that have a port
or a host of their own would refuse them. Other callers send their credentials, and get the URLs as they were reported.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Awaitable, Callable, Sequence

import orjson

from apiserver.events.model import Sample
from apiserver.services.backend import Call

#: A picture's URL in a figure, which is JSON inside of a plot's JSON: {"plot_str": "{\"source\": \"http://…\"}"}. One
#: with escapes in it (`\\u0026`) is left as it is: of files that the SDK uploads, no URL has any.
_SOURCE = re.compile(rb'(?:(?<=\\"source\\":\\")|(?<=\\"source\\": \\"))https?://[^"\\\s]++(?=\\")')

#: Links that one answer may have, as each costs 20 µs to sign: pictures beyond keep their URLs.
MOST = 500

Show = Callable[[Sequence[Sample]], Awaitable[list[orjson.Fragment]]]

#: Bytes of plots, of which more are looked through in a thread.
_LARGE = 2**20


async def plot_encoder(call: Call) -> Show:
    """Makes of samples what is answered: as they are, or for a page, which is known by its cookie, with links."""
    if not call.by_cookie:
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

    async def show(samples: Sequence[Sample]) -> list[orjson.Fragment]:
        large = sum([len(sample.document) for sample in samples]) > _LARGE
        return await asyncio.to_thread(linked, samples) if large else linked(samples)

    return show


async def _as_they_are(samples: Sequence[Sample]) -> list[orjson.Fragment]:
    return [orjson.Fragment(sample.document) for sample in samples]

"""Plots that are pictures: the web UI gets their files' URLs as links that open without a login.

Plotly asks browsers for a plot's pictures without the cookie (`crossOrigin = "anonymous"`), so files that have a port
or a host of their own would refuse them. Other callers send their credentials, and get the URLs as they were reported.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

from apiserver.services.backend import Call

#: A picture's URL in a figure, which is JSON inside of a plot's JSON: {"plot_str": "{\"source\": \"http://…\"}"}. One
#: with escapes in it (`\\u0026`) is left as it is: of files that the SDK uploads, no URL has any.
_SOURCE = re.compile(rb'(?:(?<=\\"source\\":\\")|(?<=\\"source\\": \\"))https?://[^"\\\s]++(?=\\")')

#: Links that one answer may have, as each costs 20 µs to sign: pictures beyond keep their URLs.
MOST = 500

Linked = Callable[[bytes], bytes]


async def linker(call: Call) -> Linked:
    """Gives plots (in JSON) with links in place of the URLs of files that lie here, if a page asks by its cookie."""
    if not call.by_cookie:
        return lambda plot: plot
    backend, company = call.backend, call.identity.company
    made = itertools.count()
    hosts = await backend.file_deletions.hosts_by(company, call.headers.get("host", ""))

    def link(url: re.Match[bytes]) -> bytes:
        if next(made) >= MOST:
            return url[0]
        return backend.file_links.link(url[0].decode(), company, hosts).encode()

    return lambda plot: _SOURCE.sub(link, plot)

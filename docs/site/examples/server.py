"""Examples of the service `server`."""

from __future__ import annotations

from docs.site.examples.call import Call

CALLS = [
    Call("server.info"),
    Call("server.get_stats"),
    Call("server.endpoints"),
    Call("server.config"),
    Call("server.report_stats_option"),
]

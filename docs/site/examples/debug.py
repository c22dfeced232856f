"""Examples of the service `debug`."""

from __future__ import annotations

from docs.site.examples.call import Call

CALLS = [Call("debug.ping")]

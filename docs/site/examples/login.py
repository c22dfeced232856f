"""Examples of the service `login`."""

from __future__ import annotations

from docs.site.examples.call import Call

CALLS = [
    Call("login.supported_modes"),
    Call("login.logout"),
]

"""Examples of the service `storage`."""

from __future__ import annotations

from docs.site.examples.call import Call

CALLS = [
    Call(
        "storage.set_settings",
        {"aws": {"key": "AKEY", "secret": "a secret", "region": "eu-central-1", "buckets": [{"bucket": "runs"}]}},
    ),
    Call("storage.get_settings"),
    Call("storage.reset_settings", {"keys": ["aws"]}),
]

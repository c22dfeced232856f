"""Examples of the service `workers`."""

from __future__ import annotations

from docs.site.examples.call import Call

_DAY = {"from_date": "$DAY_AGO", "to_date": "$NOW", "interval": 3600}

CALLS = [
    Call("queues.create", {"name": "cpus"}, {"QUEUE": "id"}),
    Call("workers.register", {"worker": "node-1:0", "queues": ["$QUEUE"], "timeout": 600, "tags": ["lab"]}),
    Call(
        "workers.status_report",
        {
            **{"worker": "node-1:0", "timestamp": "$NOW_MS", "queues": ["$QUEUE"]},
            "machine_stats": {"cpu_usage": [12.5, 80.0], "memory_used": 4096, "memory_free": 12288},
        },
    ),
    Call("workers.get_all", {"last_seen": 3600}),
    Call("workers.get_count", {"last_seen": 3600}),
    Call("workers.set_runtime_properties", {"worker": "node-1:0", "runtime_properties": [{"key": "a", "value": "b"}]}),
    Call("workers.get_runtime_properties", {"worker": "node-1:0"}),
    Call("workers.get_metric_keys", {"worker_ids": ["node-1:0"]}),
    Call(
        "workers.get_stats", {**_DAY, "worker_ids": ["node-1:0"], "items": [{"key": "cpu_usage", "aggregation": "avg"}]}
    ),
    Call("workers.get_activity_report", _DAY),
    Call("workers.unregister", {"worker": "node-1:0"}),
]

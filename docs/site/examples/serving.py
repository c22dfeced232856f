"""Examples of the service `serving`."""

from __future__ import annotations

from docs.site.examples.call import Call

_CONTAINER = {
    **{"container_id": "c-1", "endpoint_name": "classify", "endpoint_url": "http://node-1/classify"},
    **{"model_name": "net", "model_version": "2"},
}

CALLS = [
    Call("serving.register_container", {**_CONTAINER, "timeout": 600}),
    Call("serving.get_loading_instances"),
    Call(
        "serving.container_status_report",
        {
            **_CONTAINER,
            **{"uptime_sec": 60, "requests_num": 120, "requests_min": 2.0, "latency_ms": 35},
            "machine_stats": {"cpu_usage": [20, 35], "memory_used": 4096, "memory_free": 12288},
        },
    ),
    Call("serving.get_endpoints"),
    Call("serving.get_endpoint_details", {"endpoint_url": "http://node-1/classify"}),
    Call(
        "serving.get_endpoint_metrics_history",
        {
            **{"endpoint_url": "http://node-1/classify", "metric_type": "latency_ms"},
            **{"from_date": "$DAY_AGO", "to_date": "$NOW", "interval": 3600},
        },
    ),
    Call("serving.unregister_container", {"container_id": "c-1"}),
]

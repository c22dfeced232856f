"""Examples of the service `events`."""

from __future__ import annotations

from docs.site.examples.call import Call

_TRAIN = {"metric": "loss", "variant": "train"}
_IMAGES = {"task": "$TASK", "metric": "samples"}
_FILE = "http://127.0.0.1:8081/examples"

CALLS = [
    Call("projects.create", {"name": "examples/events", "description": ""}, {"PROJECT": "id"}),
    Call("tasks.create", {"name": "train", "type": "training", "project": "$PROJECT"}, {"TASK": "id"}),
    Call("tasks.create", {"name": "train again", "type": "training", "project": "$PROJECT"}, {"OTHER": "id"}),
    Call("models.create", {"name": "net", "uri": "s3://bucket/net.pt", "ready": False}, {"MODEL": "id"}),
    Call("events.add", {"type": "training_stats_scalar", "task": "$TASK", **_TRAIN, "iter": 0, "value": 0.9}),
    Call("events.get_changes", {"tasks": ["$TASK", "$OTHER"]}, {"CURSOR": "cursor"}),
    Call(
        "events.add_batch",
        (
            {"type": "training_stats_scalar", "task": "$TASK", **_TRAIN, "iter": 1, "value": 0.5},
            {"type": "training_stats_scalar", "task": "$TASK", **_TRAIN, "iter": 2, "value": 0.3},
            {"type": "training_stats_scalar", "task": "$OTHER", **_TRAIN, "iter": 1, "value": 0.7},
            {
                **{"type": "training_stats_scalar", "task": "$TASK", "iter": -2147483648},
                **{"metric": "Summary", "variant": "accuracy", "value": 0.97},
            },
            {
                **{"type": "training_stats_vector", "task": "$TASK", "iter": 1},
                **{"metric": "weights", "variant": "layer 1", "values": [0.1, 0.4, 0.2]},
            },
            {
                **{"type": "plot", "task": "$TASK", "iter": 1, "metric": "confusion", "variant": "test"},
                "plot_str": '{"data": [{"y": [1, 2], "type": "bar"}], "layout": {}}',
            },
            {
                **{"type": "plot", "task": "$TASK", "iter": 2, "metric": "confusion", "variant": "test"},
                "plot_str": '{"data": [{"y": [1, 3], "type": "bar"}], "layout": {}}',
            },
            {
                **{"type": "training_debug_image", "task": "$TASK", "iter": 1, "metric": "samples", "variant": "cat"},
                **{"key": "cat_1.png", "url": f"{_FILE}/cat_1.png"},
            },
            {
                **{"type": "training_debug_image", "task": "$TASK", "iter": 2, "metric": "samples", "variant": "cat"},
                **{"key": "cat_2.png", "url": f"{_FILE}/cat_2.png"},
            },
            {"type": "log", "task": "$TASK", "level": "info", "worker": "gpu-1", "msg": "epoch 1 has begun"},
            {"type": "log", "task": "$TASK", "level": "warning", "worker": "gpu-1", "msg": "the loss is not finite"},
            {
                **{"type": "training_stats_scalar", "task": "$MODEL", "model_event": True, "iter": 1},
                **{"metric": "accuracy", "variant": "test", "value": 0.95},
            },
        ),
    ),
    Call("events.get_changes", {"tasks": ["$TASK", "$OTHER"], "cursor": "$CURSOR"}),
    Call("events.scalar_metrics_iter_histogram", {"task": "$TASK", "samples": 100, "envelope": True}),
    Call("events.multi_task_scalar_metrics_iter_histogram", {"tasks": ["$TASK", "$OTHER"], "samples": 100}),
    Call("events.scalar_metrics_statistics", {"task": "$TASK", "metrics": [{"metric": "loss"}]}),
    Call(
        "events.scalar_metrics_of_groups",
        {
            "groups": [{"name": "all", "tasks": ["$TASK", "$OTHER"]}, {"name": "first", "tasks": ["$TASK"]}],
            "metrics": [{"metric": "loss", "variants": ["train"]}],
            "quantiles": [0.25, 0.5, 0.75],
        },
    ),
    Call(
        "events.scalar_metrics_iter_raw",
        {"task": "$TASK", "metric": {"metric": "loss", "variants": ["train"]}, "count_total": True},
    ),
    Call("events.get_scalar_metric_data", {"task": "$TASK", "metric": "loss"}),
    Call("events.get_scalar_metrics_and_variants", {"task": "$TASK"}),
    Call("events.get_task_single_value_metrics", {"tasks": ["$TASK"]}),
    Call("events.get_task_latest_scalar_values", {"task": "$TASK"}),
    Call("events.get_task_metrics", {"tasks": ["$TASK"], "event_type": "training_stats_scalar"}),
    Call("events.get_multi_task_metrics", {"tasks": ["$TASK", "$OTHER"], "event_type": "training_stats_scalar"}),
    Call("events.get_vector_metrics_and_variants", {"task": "$TASK"}),
    Call("events.vector_metrics_iter_histogram", {"task": "$TASK", "metric": "weights", "variant": "layer 1"}),
    Call("events.get_task_events", {"task": "$TASK", "event_type": "plot", "batch_size": 1}, {"SCROLL": "scroll_id"}),
    Call("events.get_task_events", {"task": "$TASK", "event_type": "plot", "scroll_id": "$SCROLL"}),
    Call("events.get_task_plots", {"task": "$TASK", "iters": 1}),
    Call("events.get_multi_task_plots", {"tasks": ["$TASK", "$OTHER"], "iters": 1}),
    Call("events.plots", {"metrics": [{"task": "$TASK", "metric": "confusion"}]}, {"PLOTS": "scroll_id"}),
    Call("events.get_plot_sample", {"task": "$TASK", "metric": "confusion"}, {"PLOT": "scroll_id"}),
    Call("events.next_plot_sample", {"task": "$TASK", "scroll_id": "$PLOT"}),
    Call("events.debug_images", {"metrics": [_IMAGES]}),
    Call(
        "events.get_debug_image_sample",
        {"task": "$TASK", "metric": "samples", "variant": "cat"},
        {"IMAGE": "scroll_id"},
    ),
    Call("events.next_debug_image_sample", {"task": "$TASK", "scroll_id": "$IMAGE"}),
    Call("events.get_task_log", {"task": "$TASK", "batch_size": 100, "order": "asc"}),
    Call("events.get_task_log", {"task": "$TASK", "search": {"text": "not finite"}, "levels": ["warning"]}),
    Call("events.download_task_log", {"task": "$TASK", "line_type": "text", "line_format": "{level} {msg}"}),
    Call("events.clear_scroll", {"scroll_id": "$PLOTS"}),
    Call("events.clear_task_log", {"task": "$TASK"}),
    Call("events.delete_for_model", {"model": "$MODEL"}),
    Call("events.delete_for_task", {"task": "$TASK"}),
]

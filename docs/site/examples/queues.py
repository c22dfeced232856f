"""Examples of the service `queues`."""

from __future__ import annotations

from docs.site.examples.call import Call

_FIRST = {"queue": "$QUEUE", "task": "$TASK"}

CALLS = [
    Call("tasks.create", {"name": "train", "type": "training"}, {"TASK": "id"}),
    Call("tasks.create", {"name": "evaluate", "type": "testing"}, {"OTHER": "id"}),
    Call("queues.create", {"name": "gpus/large", "display_name": "large GPUs", "tags": ["gpu"]}, {"QUEUE": "id"}),
    Call("queues.create", {"name": "gpus/small"}, {"SMALL": "id"}),
    Call("queues.get_by_id", {"queue": "$QUEUE"}),
    Call("queues.get_all", {"name": "^gpus/", "only_fields": ["name"]}),
    Call("queues.get_all_ex", {"name": "^gpus/", "only_fields": ["name", "entries"]}),
    Call("queues.get_default"),
    Call("queues.update", {"queue": "$QUEUE", "display_name": "GPUs with 80 GB"}),
    Call(
        "queues.add_or_update_metadata",
        {"queue": "$QUEUE", "metadata": [{"key": "room", "type": "str", "value": "2.14"}]},
    ),
    Call("queues.delete_metadata", {"queue": "$QUEUE", "keys": ["room"]}),
    Call("tasks.enqueue", {"task": "$TASK", "queue": "$QUEUE"}),
    Call("tasks.enqueue", {"task": "$OTHER", "queue": "$QUEUE"}),
    Call("queues.get_num_entries", {"queue": "$QUEUE"}),
    Call("queues.peek_task", {"queue": "$QUEUE"}),
    Call("queues.get_by_task_id", {"task": "$TASK"}),
    Call("queues.move_task_to_back", _FIRST),
    Call("queues.move_task_to_front", _FIRST),
    Call("queues.move_task_backward", {**_FIRST, "count": 1}),
    Call("queues.move_task_forward", {**_FIRST, "count": 1}),
    Call("queues.move_task_to_queue", {**_FIRST, "target_queue": "$SMALL"}),
    Call("queues.remove_task", {"queue": "$SMALL", "task": "$TASK"}),
    Call("queues.add_task", _FIRST),
    Call("queues.get_next_task", {"queue": "$QUEUE", "get_task_info": True}),
    Call("queues.get_queue_metrics", {"from_date": "$DAY_AGO", "to_date": "$NOW", "interval": 3600}),
    Call("queues.clear_queue", {"queue": "$QUEUE"}),
    Call("queues.delete", {"queue": "$SMALL"}),
]

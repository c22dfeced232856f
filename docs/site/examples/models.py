"""Examples of the service `models`."""

from __future__ import annotations

from docs.site.examples.call import Call

CALLS = [
    Call("projects.create", {"name": "examples/models", "description": ""}, {"PROJECT": "id"}),
    Call("tasks.create", {"name": "train", "type": "training", "project": "$PROJECT"}, {"TASK": "id"}),
    Call("tasks.started", {"task": "$TASK"}),
    Call(
        "models.create",
        {
            **{"name": "net", "uri": "s3://bucket/net.pt", "project": "$PROJECT", "framework": "PyTorch"},
            **{"task": "$TASK", "labels": {"cat": 0, "dog": 1}, "ready": False},
        },
        {"MODEL": "id"},
    ),
    Call("models.get_by_id", {"model": "$MODEL"}),
    Call("models.get_by_id_ex", {"id": ["$MODEL"], "only_fields": ["name", "uri"]}),
    Call("models.get_all", {"project": ["$PROJECT"], "only_fields": ["name", "framework"]}),
    Call("models.get_all_ex", {"project": ["$PROJECT"], "only_fields": ["name", "task.name"], "order_by": ["name"]}),
    Call("models.get_frameworks", {"projects": ["$PROJECT"]}),
    Call("models.edit", {"model": "$MODEL", "design": {"design": "depth: 18"}}),
    Call("models.update", {"model": "$MODEL", "comment": "the best so far"}),
    Call("models.update_for_task", {"task": "$TASK", "uri": "s3://bucket/net_2.pt", "iteration": 2}),
    Call("models.get_by_task_id", {"task": "$TASK"}),
    Call("models.update_tags", {"ids": ["$MODEL"], "add_tags": ["small"]}),
    Call(
        "models.add_or_update_metadata",
        {"model": "$MODEL", "metadata": [{"key": "accuracy", "type": "float", "value": "0.97"}]},
    ),
    Call("models.delete_metadata", {"model": "$MODEL", "keys": ["accuracy"]}),
    Call("models.move", {"ids": ["$MODEL"], "project_name": "examples/models/best"}),
    Call("models.make_public", {"ids": ["$MODEL"]}),
    Call("models.make_private", {"ids": ["$MODEL"]}),
    Call("models.archive_many", {"ids": ["$MODEL"]}),
    Call("models.unarchive_many", {"ids": ["$MODEL"]}),
    Call("tasks.completed", {"task": "$TASK"}),
    Call("models.set_ready", {"model": "$MODEL", "publish_task": True}),
    Call("models.create", {"name": "other", "uri": "s3://bucket/other.pt", "ready": False}, {"OTHER": "id"}),
    Call("models.publish_many", {"ids": ["$OTHER"]}),
    Call("models.delete", {"model": "$MODEL", "force": True}),
    Call("models.delete_many", {"ids": ["$OTHER"], "force": True}),
]

"""Examples of the service `projects`."""

from __future__ import annotations

from docs.site.examples.call import Call

CALLS = [
    Call("projects.create", {"name": "examples/projects", "description": "What we try"}, {"PROJECT": "id"}),
    Call("projects.create", {"name": "examples/projects/cats"}, {"CATS": "id"}),
    Call(
        "tasks.create",
        {
            **{"name": "train", "type": "training", "project": "$PROJECT", "tags": ["baseline"]},
            "hyperparams": {"Args": {"lr": {"section": "Args", "name": "lr", "value": "0.1"}}},
        },
        {"TASK": "id"},
    ),
    Call("tasks.create", {"name": "evaluate", "type": "testing", "project": "$PROJECT", "parent": "$TASK"}),
    Call(
        "models.create",
        {
            **{"name": "net", "uri": "s3://bucket/net.pt", "project": "$PROJECT", "tags": ["small"]},
            "metadata": [{"key": "accuracy", "type": "float", "value": "0.97"}],
        },
    ),
    Call(
        "events.add",
        {
            **{"type": "training_stats_scalar", "task": "$TASK", "iter": 1},
            **{"metric": "loss", "variant": "train", "value": 0.5},
        },
    ),
    Call("projects.get_by_id", {"project": "$PROJECT"}),
    Call("projects.get_all", {"name": "^examples/projects", "only_fields": ["name"], "order_by": ["name"]}),
    Call("projects.get_all_ex", {"id": ["$PROJECT"], "include_stats": True, "only_fields": ["name", "stats"]}),
    Call("projects.update", {"project": "$PROJECT", "description": "What we tried", "tags": ["2026"]}),
    Call("projects.get_unique_metric_variants", {"project": "$PROJECT"}),
    Call("projects.get_hyper_parameters", {"project": "$PROJECT"}),
    Call("projects.get_hyperparam_values", {"projects": ["$PROJECT"], "section": "Args", "name": "lr"}),
    Call("projects.get_model_metadata_keys", {"project": "$PROJECT"}),
    Call("projects.get_model_metadata_values", {"projects": ["$PROJECT"], "key": "accuracy"}),
    Call("projects.get_task_tags", {"projects": ["$PROJECT"]}),
    Call("projects.get_model_tags", {"projects": ["$PROJECT"]}),
    Call("projects.get_project_tags", {"projects": ["$PROJECT"]}),
    Call("projects.get_task_parents", {"projects": ["$PROJECT"]}),
    Call("projects.get_user_names", {"projects": ["$PROJECT"], "entity": "task"}),
    Call("projects.make_public", {"ids": ["$CATS"]}),
    Call("projects.make_private", {"ids": ["$CATS"]}),
    Call("projects.create", {"name": "examples/dogs"}, {"DOGS": "id"}),
    Call("projects.move", {"project": "$DOGS", "new_location": "examples/projects"}),
    Call("projects.merge", {"project": "$DOGS", "destination_project": "$CATS"}),
    Call("projects.validate_delete", {"project": "$PROJECT"}),
    Call("projects.delete", {"project": "$PROJECT", "force": True, "delete_contents": True}),
]

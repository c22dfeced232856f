"""Examples of the service `pipelines`."""

from __future__ import annotations

from docs.site.examples.call import Call

CALLS = [
    Call("queues.create", {"name": "pipelines"}, {"QUEUE": "id"}),
    Call("projects.create", {"name": "examples/pipelines", "system_tags": ["pipeline"]}, {"PROJECT": "id"}),
    Call(
        "tasks.create",
        {"name": "nightly", "type": "controller", "project": "$PROJECT", "system_tags": ["pipeline"]},
        {"TASK": "id"},
    ),
    Call("pipelines.check_new_run", {"task": "$TASK", "new_project_name": "examples/.pipelines/nightly"}),
    Call(
        "pipelines.start_pipeline",
        {"task": "$TASK", "queue": "$QUEUE", "args": [{"name": "rows", "value": "1000"}]},
        {"RUN": "pipeline"},
    ),
    Call("pipelines.delete_runs", {"project": "$PROJECT", "ids": ["$RUN"]}),
]

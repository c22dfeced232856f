"""Examples of the service `reports`."""

from __future__ import annotations

from docs.site.examples.call import Call

CALLS = [
    Call("projects.create", {"name": "examples/reports"}, {"PROJECT": "id"}),
    Call("tasks.create", {"name": "train", "type": "training", "project": "$PROJECT"}, {"TASK": "id"}),
    Call(
        "reports.create",
        {"name": "What we learned", "project": "$PROJECT", "report": "# It works\nSee the loss.", "tags": ["2026"]},
        {"REPORT": "id"},
    ),
    Call("reports.update", {"task": "$REPORT", "report": "# It works\nSee the accuracy."}),
    Call("reports.get_all_ex", {"project": ["$PROJECT"], "only_fields": ["name", "tags"]}),
    Call("reports.get_tags"),
    Call(
        "reports.get_task_data",
        {"id": ["$TASK"], "only_fields": ["name"], "scalar_metrics_iter_histogram": {"samples": 100}},
    ),
    Call("reports.move", {"task": "$REPORT", "project_name": "examples/other reports"}),
    Call("reports.archive", {"task": "$REPORT"}),
    Call("reports.unarchive", {"task": "$REPORT"}),
    Call("reports.publish", {"task": "$REPORT", "comment": "final"}),
    Call("reports.delete", {"task": "$REPORT", "force": True}),
]

"""Examples of the service `organization`."""

from __future__ import annotations

from docs.site.examples.call import Call

CALLS = [
    Call("projects.create", {"name": "examples/organization"}, {"PROJECT": "id"}),
    Call("tasks.create", {"name": "train", "type": "training", "project": "$PROJECT", "tags": ["baseline"]}),
    Call("organization.get_user_companies"),
    Call("organization.get_entities_count", {"tasks": {"type": ["training"]}, "projects": {}}),
    Call("organization.get_tags", {"include_system": True}),
    Call(
        "organization.get_project_usages",
        {"projects": ["$PROJECT"], "from_date": "2026-11-01", "usage_fields": ["duration"]},
    ),
    Call(
        "organization.get_project_workloads",
        {"projects": ["$PROJECT"], "from_date": "2026-11-01", "breakdown_keys": ["user"]},
    ),
    Call(
        "organization.prepare_download_for_get_all",
        {
            **{"entity_type": "task", "project": ["$PROJECT"], "only_fields": ["name", "status"]},
            "field_mappings": [{"field": "name"}, {"field": "status"}],
        },
        {"DOWNLOAD": "prepare_id"},
    ),
    Call("organization.download_for_get_all", {"prepare_id": "$DOWNLOAD"}),
]

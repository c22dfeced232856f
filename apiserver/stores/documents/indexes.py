"""The indexes that every engine makes: fields that are often looked up. `id` is unique in every collection anyway."""

from __future__ import annotations

from apiserver.stores.documents.base import Index

#: Fields that all of a company's documents are sorted by.
_SORTED = {
    "tasks": (
        *("name", "type", "status", "user", "created", "started", "completed", "last_update", "last_change"),
        *("last_iteration", "active_duration"),
    ),
    "models": ("name", "framework", "ready", "user", "created", "last_update", "last_change"),
    "projects": ("created", "last_update"),
}

_TAGS = ("system_tags",)
#: Fields by which all of a company's documents are counted, grouped and searched.
_COVERED = {
    "tasks": ("public", "project", "status", "type", "user", "parent", "name", "system_tags", "tags"),
    "models": ("public", "project", "framework", "ready", "user", "task", "name", "system_tags", "tags"),
    "projects": ("public", "name", "system_tags", "tags"),
}

#: Fields by which a project's tasks are counted, and which are summed up.
_COUNTED = ("system_tags", "status", "user", "active_duration", "started", "completed")

INDEXES: tuple[Index, ...] = (
    Index("tasks", ("company", "project"), covers=_COUNTED),
    Index("tasks", ("project",)),
    Index("tasks", ("status",)),
    Index("tasks", ("user",)),
    Index("tasks", ("parent",)),
    Index("tasks", ("name",)),
    Index("tasks", ("public", "company")),
    Index("projects", ("company", "name"), unique=True),
    Index("projects", ("parent",)),
    Index("projects", ("public", "company")),
    Index("models", ("company", "project")),
    Index("models", ("project",)),
    Index("models", ("task",)),
    Index("models", ("uri",)),
    Index("models", ("name",)),
    Index("models", ("public", "company")),
    Index("queues", ("company", "name"), unique=True),
    Index("workers", ("company",)),
    Index("users", ("company", "name"), unique=True),
    Index("credentials", ("key",), unique=True),
    Index("credentials", ("user",)),
    Index("views", ("user",)),
    Index("views", ("project",)),
    Index("sessions", ("user",)),
    Index("sessions", ("expires",)),
    *(
        Index(
            collection, ("company", field), sorts=True, covers=_COVERED[collection] if field == "last_update" else _TAGS
        )
        for collection, fields in _SORTED.items()
        for field in fields
    ),
)

APART: dict[str, tuple[str, ...]] = {
    "tasks": ("last_metrics", "script", "hyperparams", "configuration", "execution"),
}
"""Top-level fields that grow large. An engine may keep them apart from the others, so that only calls that name them
take time for them."""

LISTS: dict[str, tuple[str, ...]] = dict.fromkeys(("tasks", "models", "projects"), ("system_tags", "tags"))
"""Top-level fields that are short lists of texts, which nearly every query names."""

NUMERIC: dict[str, tuple[str, ...]] = {
    "tasks": ("hyperparams", "last_metrics"),
    "models": ("metadata", "last_metrics"),
}
"""Top-level fields below which texts that are numbers sort as numbers."""

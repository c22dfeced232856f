"""Which fields are looked up often: the indexes that every engine makes. `id` is unique everywhere by itself."""

from __future__ import annotations

from apiserver.stores.documents.base import Index

INDEXES: tuple[Index, ...] = (
    Index("tasks", ("company", "project")),
    Index("tasks", ("company", "created")),
    Index("tasks", ("company", "last_update")),
    Index("tasks", ("project",)),
    Index("tasks", ("status",)),
    Index("tasks", ("user",)),
    Index("tasks", ("parent",)),
    Index("tasks", ("name",)),
    Index("projects", ("company", "name"), unique=True),
    Index("projects", ("parent",)),
    Index("models", ("company", "project")),
    Index("models", ("company", "last_update")),
    Index("models", ("project",)),
    Index("models", ("task",)),
    Index("models", ("uri",)),
    Index("models", ("name",)),
    Index("queues", ("company", "name"), unique=True),
    Index("workers", ("company",)),
    Index("users", ("company", "name"), unique=True),
    Index("credentials", ("key",), unique=True),
    Index("credentials", ("user",)),
)

APART: dict[str, tuple[str, ...]] = {
    "tasks": ("last_metrics", "script", "hyperparams", "configuration", "execution"),
}
"""Top-level fields that grow large: an engine may keep them beside the rest, so that only who names them pays."""

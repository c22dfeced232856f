"""Which endpoints the audit log tells of, and which fields of their requests it shows.

Fields are named one by one, so that no secret comes into the log: neither of keys, nor of storage, nor a token.
"""

from __future__ import annotations

from collections.abc import Mapping

_ONE, _MANY = ("task", "force"), ("ids", "force")
_PUBLIC = ("ids",)

#: By endpoint: the fields that say what was acted on.
ACTIONS: Mapping[str, tuple[str, ...]] = {
    # sign-ins, and what they lead to
    "auth.login": (),
    "auth.login_by_link": (),
    "auth.finish_provider_login": (),
    "auth.logout": (),
    "login.logout": (),
    "auth.get_token_for_user": ("user", "expiration_sec"),
    "users.end_sessions": ("user", "sessions", "all", "others"),
    # access keys
    "auth.create_credentials": ("label", "scopes", "project", "expiration_sec"),
    "auth.edit_credentials": ("access_key", "label"),
    "auth.revoke_credentials": ("access_key",),
    # users
    "auth.create_user": ("name", "role", "service"),
    "auth.edit_user": ("user", "role"),
    "users.create": ("id", "name"),
    "users.delete": ("user",),
    "users.update": ("user", "name"),
    # deletes
    "events.delete_for_task": ("task", "allow_locked"),
    "events.delete_for_model": ("model", "allow_locked"),
    "events.clear_task_log": ("task", "threshold_sec", "allow_locked"),
    "models.delete": ("model", "force"),
    "models.delete_many": _MANY,
    "models.delete_metadata": ("model", "keys"),
    "pipelines.delete_runs": ("project", "ids"),
    "projects.delete": ("project", "force", "delete_contents"),
    "projects.merge": ("project", "destination_project"),
    "queues.delete": ("queue", "force"),
    "queues.clear_queue": ("queue",),
    "queues.delete_metadata": ("queue", "keys"),
    "reports.delete": _ONE,
    "tasks.delete": _ONE,
    "tasks.delete_many": _MANY,
    "tasks.delete_artifacts": ("task",),
    "tasks.delete_configuration": ("task", "configuration"),
    "tasks.delete_hyper_params": ("task",),
    "tasks.delete_models": ("task",),
    "tasks.reset": _ONE,
    "tasks.reset_many": _MANY,
    # what is published
    "models.set_ready": ("model", "publish_task"),
    "models.publish_many": ("ids", "publish_task", "publish_tasks"),
    "models.make_public": _PUBLIC,
    "models.make_private": _PUBLIC,
    "projects.make_public": _PUBLIC,
    "projects.make_private": _PUBLIC,
    "reports.publish": ("task",),
    "tasks.publish": ("task", "force", "publish_model"),
    "tasks.publish_many": ("ids", "force", "publish_model"),
    "tasks.make_public": _PUBLIC,
    "tasks.make_private": _PUBLIC,
    # exports
    "events.download_task_log": ("task",),
    "organization.download_for_get_all": ("prepare_id",),
    # settings
    "storage.set_settings": (),
    "storage.reset_settings": ("keys",),
}
#: Clients call these again and again: what is the same within a minute is one line.
COUNTED = frozenset({"auth.login", "events.clear_task_log"})

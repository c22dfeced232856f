"""Scopes of access keys: what calls with a key may do, of what the key's owner may.

A key without scopes allows everything that its owner may do. A key with scopes allows what one of them names:

- `read`: calls that change nothing, and reading data, files and live streams;
- `events`: sending events, as ClearML's client does and by OpenTelemetry;
- `files`: reading, uploading and deleting files;
- `write`: all of these, and changing tasks, models, projects, queues, workers, reports and shared views: what a
  training run, an agent or a pipeline needs;
- `all`: everything, also users, access keys and settings.

A key may also be limited to a project and those below it: `stores/documents/within.py` says what it sees. Services
whose answers are of the whole company are closed to it.

The tokens, cookies and links that were got with a key allow what the key does. For example, a token of a key with the
scope `read` may call `tasks.get_all`, but neither `tasks.edit` nor `auth.create_credentials`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from apiserver.common.times import epoch_millis, utc_text
from apiserver.rpc.call import FULL, Grant
from apiserver.stores.documents.query import Document

READ, EVENTS, FILES, WRITE, ALL = "read", "events", "files", "write", "all"
SCOPES = (READ, EVENTS, FILES, WRITE, ALL)

_SENDING = frozenset({"events.add", "events.add_batch"})
_FILES = frozenset({"files.get_file", "files.change"})
#: Services whose calls are allowed by `write`. Other services, such as a new one, need `all`.
_WRITTEN = frozenset(
    {
        *("data", "events", "files", "models", "organization", "pipelines", "projects", "queues", "reports", "serving"),
        *("tasks", "workers"),
    }
)
#: Services whose calls that change nothing are allowed by `read`. `auth` and `storage` tell keys and secrets.
_READ = _WRITTEN | {"debug", "login", "server", "users", "vendors"}
#: Keys of a project may call these services, and single endpoints, if their scopes allow it.
_OF_PROJECTS = frozenset({"data", "debug", "events", "files", "models", "projects", "reports", "tasks", "vendors"})
_ALSO_OF_PROJECTS = frozenset(
    {
        *("server.endpoints", "server.info", "server.report_stats_option"),
        *("users.get_current_user", "users.get_preferences"),
    }
)
#: What `write` does not allow, although it is of these services: only admins may call it.
_PUBLISHING = frozenset({"models.make_public", "projects.make_public", "tasks.make_public"})


def allow(scopes: Sequence[str], endpoint: str, *, reads: bool) -> bool:
    """Whether one of the scopes allows the endpoint. `reads`: the endpoint changes nothing."""
    service = endpoint.partition(".")[0]
    if ALL in scopes:
        return True
    if reads and service in _READ and (READ in scopes or WRITE in scopes):
        return True
    if service in _WRITTEN and endpoint not in _PUBLISHING and WRITE in scopes:
        return True
    return (EVENTS in scopes and endpoint in _SENDING) or (FILES in scopes and endpoint in _FILES)


def allow_within_project(endpoint: str) -> bool:
    """Whether a key that is limited to a project may call the endpoint at all."""
    service = endpoint.partition(".")[0]
    return endpoint in _ALSO_OF_PROJECTS or (service in _OF_PROJECTS and endpoint not in _PUBLISHING)


def grant_of(credential: Document) -> Grant:
    """The grant in the document of an access key."""
    scopes, expires = credential.get("scopes"), epoch_millis(credential.get("expires"))
    project = credential.get("project")
    if scopes is None and expires is None and project is None:
        return FULL
    return Grant(None if scopes is None else tuple(scopes), project, math.inf if expires is None else expires / 1000)


def fields_of(grant: Grant) -> Document:
    """The fields in which the document of an access key says what the key allows; none for a full grant."""
    fields: Document = {}
    if grant.scopes is not None:
        fields["scopes"] = list(grant.scopes)
    if grant.project is not None:
        fields["project"] = grant.project
    if grant.expires != math.inf:
        fields["expires"] = utc_text(datetime.fromtimestamp(round(grant.expires, 3), UTC))
    return fields

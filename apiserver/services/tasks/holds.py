"""The holds of tasks."""

from __future__ import annotations

from apiserver.services.documents.holds import Hold
from apiserver.services.tasks.task_documents import BEING_QUEUED, BEING_RESET

#: While a task is reset or deleted, no other call may change its status.
RESETTING = Hold(BEING_RESET, 60.0)
#: While a call puts a task into a queue or takes it out, no other call may do so.
QUEUEING = Hold(BEING_QUEUED, 10.0)

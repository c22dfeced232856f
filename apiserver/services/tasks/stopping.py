"""Runs that are told to stop, and stop themselves: who is told, and what ends those that fall silent.

A run is told by its status message, which agents and the SDK read. It stays in progress meanwhile, so that it can still
link what its abort callback saves:

    tasks.stop     in_progress, "stopping"     the SDK reads it, calls the callback, uploads …
    tasks.stopped  stopped                     and then says so

If the run is not heard of any more, the server stops it by itself. So no run is stopping for ever.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from apiserver.common.times import from_now, utc_now
from apiserver.events.last_metrics import run_time
from apiserver.services.tasks.holds import RESETTING
from apiserver.services.tasks.task_documents import BEING_RESET, TASKS
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.query import Document, Less, Update

STOPPING = "stopping"
#: A task whose worker has not been heard of for longer is stopped at once.
WORKER_SILENCE = timedelta(minutes=10)
#: The same of a run that somebody started by hand. The SDK pings twice a minute.
RUN_SILENCE = timedelta(minutes=2)
#: What `needs_telling` and `end_silent` look at.
FIELDS = ("status", "status_message", "system_tags", "last_worker", "last_update", "runtime")
#: The SDK's runtime properties: seconds that the callback of a run may take, and whether it was called.
_CALLBACK, _CALLED = "_abort_callback_timeout", "_abort_callback_completed"
#: The longest callback that the server waits for.
_LONGEST_CALLBACK = 86400.0
#: Seconds between two looks for silent runs.
INTERVAL = 60.0


def needs_telling(task: Document, *, at_once: bool) -> bool:
    """Whether a task is told to stop, and stops itself: if a worker runs it, or its SDK has a callback for that.

    With `at_once`, or if it was told before, only a worker is told.
    """
    if task["status"] != "in_progress":
        return False
    if task.get("last_worker") and "development" not in task.get("system_tags", []):
        return _is_heard(task, WORKER_SILENCE)
    was_told = task.get("status_message") == STOPPING
    return bool(_callback_time(task)) and not (at_once or was_told) and _is_heard(task, RUN_SILENCE)


async def end_silent(documents: DocumentStore) -> None:
    """Stop the tasks that were told to stop, and were not heard of for longer than worker or callback may take."""
    told = {"status": "in_progress", "status_message": STOPPING}
    quiet = {**told, "last_update": Less(from_now(-WORKER_SILENCE.total_seconds()))}
    for task in await documents.find(TASKS, quiet, projection=(*FIELDS, "started", BEING_RESET)):
        if _is_heard(task, WORKER_SILENCE + _callback_time(task)) or RESETTING.holds(task):
            continue
        now, heard = utc_now(), task["last_update"]
        ended: Document = {
            "status": "stopped",
            "status_message": "Stopped: it was told to stop, and was not heard of any more",
            **{"status_changed": now, "last_change": now, "last_update": now},
            **{"completed": heard, **run_time(task, heard)},
        }
        await documents.update(TASKS, {"id": task["id"], **told, "last_update": heard}, Update(set=ended))


def _callback_time(task: Document) -> timedelta:
    """How long the callback may take that the SDK calls before it stops; nothing if there is none, or it was called."""
    runtime = task.get("runtime") or {}
    try:
        seconds = 0.0 if runtime.get(_CALLED) else float(runtime.get(_CALLBACK) or 0)
    except (TypeError, ValueError):  # somebody else wrote that
        return timedelta(0)
    return timedelta(seconds=min(seconds, _LONGEST_CALLBACK)) if seconds > 0 else timedelta(0)


def _is_heard(task: Document, silence: timedelta) -> bool:
    return datetime.now(UTC) - datetime.fromisoformat(task["last_update"]) < silence

"""Checks of tasks: the order of their statuses, what becomes of their models, and who gets their entries in a queue.

Each task is checked by itself. If the calls of each task fit, then all calls fit together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from apiserver.services.tasks.status import NEXT
from apiserver.services.tasks.statuses import LOCKED
from tests.robustness.history.linear import Model, State, fits, shortest_that_does_not_fit
from tests.robustness.history.operations import History, Operation, Outcome

#: What calls that change the status of a task set it to.
TARGETS = {
    "started": "in_progress",
    "stopped": "stopped",
    "failed": "failed",
    "completed": "completed",
    "close": "closed",
    "publish": "published",
    "enqueue": "queued",
}
#: Why a call is refused: the status does not allow it, there is no such task or model, the task is in the queue
#: already; a task that is used, or has a published model, is deleted only by force; the model is published already.
STATUS, GONE, THERE, USED, PUBLISHED = "status", "gone", "there", "used", "published already"
#: What `dequeue` answers for a task that neither waits nor runs: there is nothing to take out of a queue.
NOTHING = "nothing"
_BEFORE_QUEUED = ("created", "stopped", "failed")


def status_model(status: str, call: Operation) -> Iterable[str]:
    """The statuses that a task may have after a call; `GONE` if it was deleted."""
    if call.kind in ("delete", "delete by force") and call.outcome is not Outcome.REFUSED:
        may_go = call.kind == "delete by force" or status in ("created", GONE)
        return [GONE] if may_go else []  # both of two that overlap may have done it
    if call.kind == "reset" and call.answer == GONE and status not in (GONE, *LOCKED):
        return ["created"]  # it was deleted while it was reset
    if status == GONE or call.answer == GONE:
        return [status] if status == call.answer else []
    if call.answer == USED:
        return [] if status == "created" else [status]
    if call.outcome is Outcome.REFUSED and call.answer == STATUS:
        return [] if _allowed(status, call.kind) else [status]
    match call.kind:
        case "read":
            return [status] if call.answer == status else []
        case "dequeue" if status not in ("queued", "in_progress"):
            return [status] if call.answer in (NOTHING, None) else []
        case "dequeue" if call.answer is None:  # the status that it had when it was queued
            return _BEFORE_QUEUED
        case "dequeue":
            return [] if call.answer == NOTHING else [call.answer]
    return _allowed(status, call.kind)


def _allowed(status: str, kind: str) -> list[str]:
    """The status after a call that changes it; none if it is not allowed."""
    if kind == "reset":
        return [] if status in LOCKED else ["created"]
    target = TARGETS[kind]
    may_stay = kind != "publish" and status == target
    return [target] if may_stay or target in NEXT[status] else []


def draft_model(model: str, call: Operation) -> Iterable[str]:
    """The states that the model of a task may have after a call, of "draft", "published" and GONE.

    No other calls change the model.
    """
    match call.kind, call.answer:
        case "delete with model", answer if answer == USED:
            return ["published"] if model == "published" else []
        case "read model" | "publish model" | "delete with model", answer if answer == GONE:
            return [GONE] if model == GONE else []
        case "delete with model", _:
            return [] if model == "published" else [GONE]
        case "publish model", answer if answer == PUBLISHED:
            return ["published"] if model == "published" else []
        case "publish model", _:
            return ["published"] if model == "draft" else []
        case "read model", answer:
            return [model] if model == answer else []
    raise AssertionError(call.kind)


def entry_model(waits: bool, call: Operation) -> Iterable[bool]:
    """Whether a task may be in the queue after a call."""
    match call.kind, call.outcome, call.answer:
        case "enqueue", Outcome.REFUSED, answer if answer == THERE:
            return [True] if waits else []
        case "enqueue", Outcome.REFUSED, _:
            return [waits]
        case "enqueue", _, _:
            return [] if waits else [True]
        case "pop", Outcome.UNKNOWN, _:
            return [False]
        case "pop", _, task:
            return [False] if waits == (task is not None) else []
        case "dequeue", _, _:
            return [False]
    raise AssertionError(call.kind)


def wrong_statuses(history: History) -> list[str]:
    """Tasks whose calls fit no order of statuses."""
    kinds = (*TARGETS, "reset", "delete", "delete by force", "dequeue", "read")
    every = history.by_target(*kinds).values()
    return [_told(calls, "created", status_model) for calls in every if not fits(calls, "created", status_model)]


def wrong_models(history: History) -> list[str]:
    """Tasks whose model was deleted although it was published, or the other way round."""
    every = history.by_target("delete with model", "publish model", "read model").values()
    return [_told(calls, "draft", draft_model) for calls in every if not fits(calls, "draft", draft_model)]


def wrong_entries(history: History) -> list[str]:
    """Tasks whose entries in the queue fit no order: one was lost, or two workers were given it.

    A lost answer may have held any entry. So as many tasks may be missing as answers were lost, and no more.
    """
    by_task = history.by_target("enqueue", "dequeue")
    popped = history.by("pop")
    lost = [call for call in popped if call.outcome is Outcome.UNKNOWN]
    wrong, missing = [], []
    for task, calls in by_task.items():
        began = min(call.began for call in calls)
        of_it = (call for call in popped if call.is_done and call.ended >= began and call.answer in (task, None))
        pops = [replace(call, on=task) for call in of_it]
        if fits([*calls, *pops], False, entry_model):
            continue
        if lost and fits([*calls, *pops, *lost], False, entry_model):
            missing.append(task)
        else:
            wrong.append(_told([*calls, *pops], False, entry_model))
    if len(missing) > len(lost):
        wrong.append(f"{len(missing)} entries are gone, and {len(lost)} answers were lost: {missing}")
    return wrong


def _told(calls: Sequence[Operation], first: State, model: Model[State]) -> str:
    return "\n  ".join(["in no order can this have been:", *map(str, shortest_that_does_not_fit(calls, first, model))])

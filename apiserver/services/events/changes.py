"""events.get_changes: the changes of many tasks since the caller last asked."""

from __future__ import annotations

from typing import Any

from apiserver.common.errors import validation_error
from apiserver.common.off_loop import off_loop
from apiserver.events.changes import Changes, ChangesQuery, Cursor, OwnerChanges
from apiserver.events.model import Owner
from apiserver.live import cursors
from apiserver.reading.scroll import InvalidScroll
from apiserver.services.backend import Call, endpoint, visible
from apiserver.services.events import owners


@endpoint("events.get_changes", "2.34")
async def get_changes(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    ids, model = list(dict.fromkeys(request["tasks"])), request["model_events"]
    since = _cursor(call, request.get("cursor"))
    seen = visible(call)
    if since is None or not seen.whole or await seen.sees_others("models" if model else "tasks"):
        changes, ids_there = await _of_documents(call, ids, model, since)
    else:
        changes, ids_there = await _of_own(call, ids, model, since)
    told = [(owner.id, changed) for owner, changed in changes.owners.items() if owner.id in ids_there]
    series = sum([len(changed.series) for _, changed in told])
    return {
        "cursor": cursors.text_of(call.backend.scrolls, call.identity.company, changes.cursor),
        "changes": await off_loop(series, lambda: [_answer(*one) for one in told]),
        "missing": [id for id in ids if id not in ids_there],
    }


async def _of_documents(call: Call, ids: list[str], model: bool, since: Cursor | None) -> tuple[Changes, set[str]]:
    """What changed, and which of the ids the caller may read, for whom all documents are read."""
    known = await owners.find(call, ids, model=model)
    asked = [owners.owner(document, model=model) for document in known.values()]
    return await call.backend.events.changes(ChangesQuery(asked, since)), set(known)


async def _of_own(call: Call, ids: list[str], model: bool, since: Cursor) -> tuple[Changes, set[str]]:
    """The same of the caller's company. Only documents of which something changed are read: others take 10 µs each."""
    asked = [Owner(call.identity.company, id, model) for id in ids]
    changes = await call.backend.events.changes(ChangesQuery(asked, since))
    changed = {owner.id for owner in changes.owners}
    known = set(await owners.find(call, list(changed), model=model)) if changed else set()
    return changes, known.union(set(ids) - changed)


def _cursor(call: Call, given: str | None) -> Cursor | None:
    try:
        return cursors.place_of(call.backend.scrolls, call.identity.company, given).cursor if given else None
    except InvalidScroll:
        raise validation_error("it is none that this server gave; leave it out to begin anew", field="cursor") from None


def _answer(task: str, changed: OwnerChanges) -> dict[str, Any]:
    return {
        "task": task,
        "everything": changed.everything,
        "series": [
            {
                "type": series.type,
                "metric": series.metric,
                "variant": series.variant,
                "from": iterations.least,
                "to": iterations.greatest,
            }
            for series, iterations in sorted(changed.series.items(), key=lambda one: one[0])
        ],
        "log_lines": changed.log_lines,
    }

"""Repairs what the doctor found: only with the folder locked, and only what it said before."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from apiserver.common.escaping import shown
from apiserver.operating.doctor.examination import Examined, Say, examine, looks
from apiserver.settings.settings import Settings
from apiserver.stores.data_folder import DataFolder
from apiserver.stores.engines import locked
from apiserver.stores.inspection import Finding


async def mend(settings: Settings, findings: Collection[Finding], say: Say) -> Examined:
    """Repair the findings, say what was done, and return the findings of another look.

    EventStoreError if a server uses the folder; then nothing is changed.
    """
    folder = DataFolder(settings.data)
    kept = folder.root / "damaged" / datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S")
    with locked(folder):
        async with looks(settings, folder) as (events, documents):
            for store, look in (("events", events), ("documents", documents)):
                # A server may have changed what was found before.
                found = {finding async for finding in look.findings()}
                wanted = [finding for finding in findings if finding.store == store and finding in found]
                for line in await look.repair(wanted, kept) if wanted else ():
                    say(shown(line))
        if kept.exists():
            say(f"what was taken out is kept in {kept}")
        left = await examine(settings, checking=True, most=1, say=lambda line: None)
    for finding in left.findings:
        say(f"left: {shown(finding.line)}")
    return left

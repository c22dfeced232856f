"""Scrubs a store in the background: reads all of it once in some days, a little at a time, when little else is to do.

Where it is, and what it found, is in a file of the data folder, so that it goes on after a restart. Findings are told
in the log, in `/health` and in `/metrics`, until the store is read again without them.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson

from apiserver.common.escaping import shown
from apiserver.common.gauges import Gauges
from apiserver.common.times import epoch_millis, utc_now
from apiserver.stores.data_folder import write_private
from apiserver.stores.events.base import EventStoreError
from apiserver.stores.inspection import Finding, Scrubbed

logger = logging.getLogger(__name__)

_DAY = 86400.0
#: Seconds after an error.
_AFTER_ERROR = 600.0
#: Requests in a second from which the server is busy.
_BUSY = 20
#: Steps between two writes of the file.
_STEPS_A_WRITE = 20
#: Findings that are remembered.
_MOST_FINDINGS = 1000


@dataclass(frozen=True, slots=True)
class ScrubBounds:
    """How long a store is left alone between two steps, in seconds."""

    least: float = 0.05
    most: float = 60
    busy: int = 60
    """How long a step waits at most until the server is not busy."""


#: Checks what lies behind a place, in a thread.
Step = Callable[[str], Scrubbed]


@dataclass
class State:
    """How far the reading is, and its findings."""

    place: str = ""
    """Behind which it goes on; "": at the beginning."""
    checked: int = 0
    """Chunks, blocks and samples of this reading so far."""
    findings: list[Finding] = field(default_factory=list)
    """The findings of this reading so far."""
    ended: str = ""
    """When the store was last read to its end; "": never."""
    before: list[Finding] = field(default_factory=list)
    """The findings of the reading before."""

    def all_findings(self) -> list[Finding]:
        """All findings of both readings, each once."""
        return list({(one.kind, one.place): one for one in (*self.before, *self.findings)}.values())


class Scrub:
    """Reads a store once in `days`. `requests` says how many requests there were so far."""

    def __init__(
        self, step: Step, path: Path, *, days: float, requests: Callable[[], int], bounds: ScrubBounds | None = None
    ) -> None:
        self._step = step
        self._path = path
        self._bounds = bounds or ScrubBounds()
        self._seconds = days * _DAY
        self._requests = requests
        self._task: asyncio.Task[None] | None = None
        self._told = -math.inf
        """When (monotonic) the log told of an end."""
        self.state = State()

    def start(self) -> None:
        """Begin where the last process ended."""
        self.state = _read(self._path)
        self._task = asyncio.create_task(self._run(), name="scrubbing")

    async def close(self) -> None:
        """Stop, and remember where."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
            await self._write()

    def report(self) -> dict[str, Any]:
        """The facts that anybody may know: the number of findings, and the time of the last whole reading."""
        return {"findings": self.findings(), "ended": self.state.ended or None}

    def gauges(self) -> Gauges:
        """Its numbers in `/metrics`."""
        return {
            "scrub_findings": ("What is damaged, as far as scrubbing knows.", self.findings),
            "scrub_ended_seconds": ("When all was last read, in seconds since 1970; 0: never.", self.ended),
        }

    def findings(self) -> int:
        """How much is known to be wrong."""
        return len(self.state.all_findings())

    def ended(self) -> float:
        """When the store was last read to its end, in epoch seconds; 0: never."""
        return (epoch_millis(self.state.ended) or 0) / 1000 if self.state.ended else 0

    async def _run(self) -> None:
        steps = 0
        while True:
            try:
                pause = await self.step()
                steps += 1
                if steps % _STEPS_A_WRITE == 0 or not self.state.place:
                    await self._write()
            except EventStoreError as error:
                logger.warning("scrubbing is tried again: %s", error)
                pause = _AFTER_ERROR
            except Exception:
                logger.exception("scrubbing failed and is tried again")
                pause = _AFTER_ERROR
            await asyncio.sleep(pause)
            await self._until_idle()

    async def step(self) -> float:
        """Check a little; return the seconds to wait until the next step."""
        state = self.state
        begun, part = time.monotonic(), await asyncio.to_thread(self._step, state.place)
        told = {(finding.kind, finding.place) for finding in state.findings}
        for finding in part.findings:
            if (finding.kind, finding.place) not in told and len(state.findings) < _MOST_FINDINGS:
                state.findings.append(finding)
                logger.error("%s", shown(finding.line))
        state.place = part.place
        state.checked += part.checked
        if not part.place:
            self._end()
        took = time.monotonic() - begun
        return min(max(self._seconds * part.share - took, self._bounds.least, took), self._bounds.most)

    def _end(self) -> None:
        state, now = self.state, time.monotonic()
        if state.findings != state.before or now - self._told >= _DAY:  # what is small is read many times a day
            self._told = now
            text = "everything was read: %d findings in %d chunks, blocks and samples"
            logger.info(text, len(state.findings), state.checked)
        self.state = State(ended=utc_now(), before=state.findings)

    async def _until_idle(self) -> None:
        for _ in range(self._bounds.busy):
            before = self._requests()
            await asyncio.sleep(1)
            if self._requests() - before < _BUSY:
                return

    async def _write(self) -> None:
        known = asdict(self.state)
        for name in ("findings", "before"):
            known[name] = [list(finding) for finding in known[name]]
        content = orjson.dumps(known, option=orjson.OPT_INDENT_2).decode()
        try:
            await asyncio.to_thread(write_private, self._path, content)
        except OSError as error:
            logger.warning("where scrubbing is cannot be remembered: %s", error)


def _read(path: Path) -> State:
    """The state that the last process wrote; a new one if its file is damaged."""
    try:
        remembered = orjson.loads(path.read_bytes())
        return State(
            str(remembered["place"]),
            int(remembered["checked"]),
            [Finding(*finding) for finding in remembered["findings"]],
            str(remembered["ended"]),
            [Finding(*finding) for finding in remembered["before"]],
        )
    except (OSError, ValueError, KeyError, TypeError):
        return State()

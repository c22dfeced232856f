"""Tells the user how far an import is, what it leaves out on purpose, and what could not be imported."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import orjson

from apiserver.common.escaping import shown
from apiserver.transfer.copying.retrying import Say
from apiserver.transfer.importing.missing import Missing, Reason

_SAY_SECONDS = 5.0
#: Most things without a place here that are named.
_NAMED = 5
#: Most missing things that programs are told one by one.
_MOST_TOLD = 100_000


class ImportFailed(Exception):
    """The import cannot go on; the message says why. What was imported stays, and another run goes on from there."""


class SourceRefused(ImportFailed):
    """The source answered one request with an error; it may still answer others."""


@dataclass(slots=True)
class Count:
    """How many documents or events of one kind the source has, and how many of them were imported."""

    found: int = 0
    taken: int = 0
    """Written in this run."""
    updated: int = 0
    """Written things that an earlier import brought, and that have changed since."""
    moved: int = 0
    """Written things that an earlier import brought into another project."""
    known: int = 0
    """Imported by an earlier run, and not changed since."""
    left: int = 0
    """Not imported, on purpose or because of a problem."""


@dataclass(slots=True)
class Report:
    """Collects counts, and what is missing; an import with anything missing is incomplete."""

    say: Say
    done: str = "imported"
    """The word for a thing that was brought: "imported" or "exported"."""
    counts: dict[str, Count] = field(default_factory=dict)
    missing: list[Missing] = field(default_factory=list)
    """The first entries, in the order in which they came."""
    by_reason: dict[Reason, int] = field(default_factory=dict)
    """How many there are of each reason."""
    unmapped: dict[str, list[str]] = field(default_factory=dict)
    """By kind, the names of things that have no place here."""

    notes: list[str] = field(default_factory=list)
    """Notes of things that were left out, or changed, on purpose."""
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    @property
    def problems(self) -> int:
        """How many things are missing."""
        return sum(self.by_reason.values())

    def count(self, kind: str) -> Count:
        """The count of a kind."""
        return self.counts.setdefault(kind, Count())

    def miss(self, missing: Missing) -> None:
        """Something was not imported, or not unchanged."""
        with self._lock:
            self.by_reason[missing.reason] = self.by_reason.get(missing.reason, 0) + missing.count
        if len(self.missing) < _MOST_TOLD:
            self.missing.append(missing)
        if missing.reason is Reason.NO_PLACE:
            self.not_mapped(missing.cause, missing.of)
        else:
            times = f" ({missing.count:,} ×)" if missing.count > 1 else ""
            self.say(shown(f"problem: {missing.of}: {missing.cause}{times}"))

    def not_mapped(self, kind: str, name: str) -> None:
        """Name something of a kind at the end; by itself, the user chose to leave it out."""
        self.unmapped.setdefault(kind, []).append(name)

    def problem(self, kind: str, name: str, cause: str, reason: Reason = Reason.BROKEN) -> None:
        """One thing of a kind was not imported, or not unchanged."""
        self.miss(Missing(reason, f"{kind} {name}", cause))

    def note(self, text: str) -> None:
        """Something was left out, or changed, on purpose."""
        if len(self.notes) < _MOST_TOLD:
            self.notes.append(text)
        self.say(shown(f"note: {text}"))

    def no_place(self, kind: str, name: str) -> None:
        """The source has something of a kind that has no place here."""
        self.miss(Missing(Reason.NO_PLACE, name, kind))

    def close(self) -> None:
        """Say how many of each kind were imported, and how much is missing."""
        for kind, names in sorted(self.unmapped.items()):
            some = shown(", ".join(dict.fromkeys(names[:_NAMED])))
            self.say(f"not mapped: {len(names):,} × {kind} ({some}{', …' if len(names) > _NAMED else ''})")
        for kind, count in self.counts.items():
            rest = f", {count.left:,} not {self.done}" if count.left else ""
            taken, known = f"{count.taken:,} {self.done}{_parts(count)}", f"{count.known:,} {self.done} before"
            self.say(f"{kind}: {count.found:,} found, {taken}, {known}{rest}")
        if self.by_reason:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(self.by_reason.items()))
            self.say(f"missing: {reasons}")

    def write(self, path: Path, **more: Any) -> None:
        """Write all of it for programs, as JSON, beside `more`. Raises OSError."""
        document: Mapping[str, Any] = {
            **more,
            "counts": {kind: asdict(count) for kind, count in self.counts.items()},
            "notes": self.notes,
            "not_mapped": {
                kind: {"count": len(names), "names": names[:_MOST_TOLD]} for kind, names in self.unmapped.items()
            },
            "by_reason": {str(reason): count for reason, count in self.by_reason.items()},
            "missing": [
                {"reason": one.reason, "of": one.of, "cause": one.cause, "count": one.count} for one in self.missing
            ],
        }
        path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))


def _parts(count: Count) -> str:
    """How many written things are not new, if any: " (2 new, 1 updated, 1 moved to another project)"."""
    parts = {"updated": count.updated, "moved to another project": count.moved}
    new = count.taken - sum(parts.values())
    said = [f"{number:,} {name}" for name, number in {"new": new, **parts}.items() if number]
    return f" ({', '.join(said)})" if new < count.taken else ""


class Progress:
    """Says every few seconds how far the work on one kind is; a `total` of 0 means that it is not known."""

    def __init__(self, kind: str, total: int, say: Say) -> None:
        self._kind = kind
        self._total = total
        self._say = say
        self._done = 0
        self._begun = time.monotonic()
        self._say_at = self._begun + _SAY_SECONDS

    def advance(self, done: int) -> None:
        """Count `done` more as done."""
        self._done += done
        now = time.monotonic()
        if now >= self._say_at:
            self._say_at = now + _SAY_SECONDS
            self._say(f"{self._kind}: {self._state(self._done / (now - self._begun))}")

    def _state(self, rate: float) -> str:
        if not self._total:
            return f"{self._done:,}, {rate:,.0f}/s"
        left = max(0, self._total - self._done) / rate if rate else 0.0
        return f"{self._done:,} of {self._total:,}, {rate:,.0f}/s, {span(left)} left"


def span(seconds: float) -> str:
    """A duration in words: "1 h 2 min"."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s" if minutes else f"{seconds} s"

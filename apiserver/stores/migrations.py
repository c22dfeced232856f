"""Brings the schema of a distributed engine up to date by numbered steps, which are recorded in the engine itself.

A step is a file `migrations/<engine>/NNNN_name.json`, whose content only the engine understands. All missing steps are
applied, and recorded afterwards. Each can be applied twice without harm, so two servers may migrate at once, and the
next start does again what a killed one has not recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from apiserver.common import resources

#: How often a schema that differs is looked at while servers may migrate it, and seconds between.
_LOOKS, PAUSE = 10, 0.5


class SchemaError(Exception):
    """A server cannot use this schema; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its number, its name ("0001_indices"), and the content of its file."""

    number: int
    name: str
    content: Any


class Target(Protocol):
    """An engine whose schema is numbered."""

    @property
    def name(self) -> str:
        """Its name for people, such as "Elasticsearch (prefix 'events')"."""

    async def applied(self) -> Mapping[int, str]:
        """The numbers of the recorded steps, each with the release that recorded it."""

    async def apply(self, steps: Sequence[Step]) -> None:
        """Do what the steps say, as if in their order. Doing it again changes nothing."""

    async def record(self, steps: Sequence[Step]) -> None:
        """Record that this release applied the steps; all servers see it once this returns. Again changes nothing."""

    async def problems(self, steps: Sequence[Step]) -> list[str]:
        """The differences from the schema that all steps make, each as a sentence for people."""


def steps_of(engine: str) -> list[Step]:
    """The steps in `migrations/<engine>`, in order."""
    files = sorted(resources.path(f"migrations/{engine}").glob("[0-9]*.json"))
    return [Step(int(file.stem.partition("_")[0]), file.stem, orjson.loads(file.read_bytes())) for file in files]


async def pending(target: Target, steps: Sequence[Step]) -> list[Step]:
    """The first step that is not recorded, and all after it. SchemaError: the schema is newer than the steps.

    A later one may be recorded, if a server was killed meanwhile. An early step would undo it if it was applied alone.
    """
    applied = await target.applied()
    newest, known = max(applied, default=0), max((step.number for step in steps), default=0)
    if newest > known:
        raise SchemaError(
            f"{target.name} has schema {newest}, made by a newer version of apiserver ({applied[newest]}); this one"
            f" knows up to {known}: start a newer version. Nothing was changed"
        )
    missing = [step.number for step in steps if step.number not in applied]
    return [step for step in steps if missing and step.number >= missing[0]]


async def migrate(target: Target, steps: Sequence[Step]) -> list[Step]:
    """Apply the steps that are not applied yet, and return them. If the schema still differs, apply all steps again.

    [] says that nothing is missing or different. SchemaError: the schema is newer than the steps.
    """
    done, differs = await _migrated(target, steps)
    return [*steps] if differs else done


async def _migrated(target: Target, steps: Sequence[Step]) -> tuple[list[Step], bool]:
    """As `migrate`: the steps that were not applied yet, and whether the schema still differed afterwards."""
    if missing := await pending(target, steps):
        await target.apply(missing)
        await target.record(missing)
    if differs := bool(await target.problems(steps)):
        await target.apply(steps)
    return missing, differs


async def require(target: Target, steps: Sequence[Step], *, migrating: bool, pause: float = PAUSE) -> None:
    """Return if the schema is what the steps make; with `migrating`, apply missing steps first.

    SchemaError if the schema is older, newer or different. With `migrating`, a different schema is looked at again for
    a while: another server may be applying an early step again, and will apply the later ones, too.
    """
    if migrating:
        _, differs = await _migrated(target, steps)
        if not differs:
            return
    missing = await pending(target, steps)
    if missing:
        known = steps[-1].number
        has = "no schema yet" if len(missing) == len(steps) else f"schema {missing[0].number - 1} of {known}"
        raise SchemaError(f"{target.name} has {has}: run `apiserver migrate`, or start with migrate_at_start = true")
    looks = _LOOKS if migrating else 1
    while problems := await target.problems(steps):
        looks -= 1
        if not looks:
            raise SchemaError(f"{target.name} is not as it must be: {'; '.join(problems)}")
        await asyncio.sleep(pause)

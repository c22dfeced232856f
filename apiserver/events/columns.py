"""Makes an EventBatch of sent events: scalars and log lines become columns, samples become documents.

Checks that need no store are made here, once for a group of events: the length of names, and that all events of an
owner have the same `allow_locked`.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from apiserver.events import documents
from apiserver.events.event_types import OddSentLog, SentEvent, SentLog, SentSample
from apiserver.events.gathered import NO_TIMESTAMP, Gathered, SeriesKey, Source, source_of
from apiserver.events.model import EventBatch, Int64Array, LogColumns, Owner, Scalars
from apiserver.events.rejects import Contradiction, Reject, Rejects

#: The most bytes of a metric, variant, worker, level, axis label or key in UTF-8; and of the id of a task or model.
MAX_NAME_BYTES = 1024
MAX_ID_BYTES = 128
#: The most groups of points in a batch. A group has one series and one worker. It costs far more than its points: a
#: summary in its owner's document, and names in memory. Batches of the SDK have some hundred groups.
MAX_SERIES = 10_000
#: The most plots, images and vectors in a batch, for the same reason.
MAX_SAMPLES = 10_000
#: A name of so few characters cannot have too many bytes, because a character has at most four.
_SHORT_NAME = MAX_NAME_BYTES // 4


class Grouping:
    """Builds a batch of the events of one company. Events that cannot be taken are counted in `rejects`.

    `worker` and `received` stand in for a missing worker and timestamp. `locked_allowed` has the `allow_locked` of each
    owner. Contradiction if events disagree about an owner; then nothing can be taken.
    """

    def __init__(self, rejects: Rejects, company: str, received: int, worker: str) -> None:
        self.rejects = rejects
        self.company = company
        self.worker = worker
        self.received = received
        self.batch = EventBatch(received)
        self.locked_allowed: dict[Owner, bool] = {}
        self._sources: dict[Source, Owner] = {}

    def add(self, gathered: Gathered, others: Iterable[SentEvent], body: bytes, *, bounded: bool) -> None:
        """Add points and other events of a body; if `bounded`, up to MAX_SERIES groups and MAX_SAMPLES samples."""
        logs: dict[Source, list[SentLog]] = defaultdict(list)
        samples: list[SentSample] = []
        for line in others:
            if isinstance(line, SentLog):
                logs[source_of(line)].append(line)
            elif isinstance(line, SentSample):
                samples.append(line)
        if bounded and len(gathered.keys) > MAX_SERIES:
            further = Reject(f"A batch has at most {MAX_SERIES:,} scalar series, of each worker", malformed=False)
            self.rejects.add(further, sum(gathered.lengths[MAX_SERIES:]))
            gathered = _first(gathered, MAX_SERIES)
        if gathered.keys:
            self._add_scalars(gathered)
        if logs:
            self._add_logs(list(logs.values()), body)
        if bounded and len(samples) > MAX_SAMPLES:
            further = Reject(f"A batch has at most {MAX_SAMPLES:,} plots, images and vectors", malformed=False)
            self.rejects.add(further, len(samples) - MAX_SAMPLES)
            del samples[MAX_SAMPLES:]
        for sample in samples:
            self._add_sample(sample)

    def _add_scalars(self, gathered: Gathered) -> None:
        source = _only_source(gathered.columns)
        if source is None or not self._takes(source) or not _are_short(gathered.columns):
            refused = self._refused(gathered.keys)
            for n, reject in refused.items():
                self.rejects.add(reject, gathered.lengths[n])
            if refused:
                gathered = _without(gathered, refused)
            if not gathered.keys:
                return
        *sources, metrics, variants, workers, labels = gathered.columns
        owner_of_source = self._sources
        owners: dict[Owner, int] = {}
        if source is not None:
            owners[owner_of_source[source]] = 0
            owner = [0] * len(metrics)
        else:
            owner = [owners.setdefault(owner_of_source[source], len(owners)) for source in zip(*sources, strict=True)]
        self.batch.scalars = Scalars(
            owner=owner,
            owners=list(owners),
            metrics=metrics,
            variants=variants,
            workers=[worker or self.worker for worker in workers],
            labels=labels,
            lengths=gathered.lengths,
            iters=gathered.iters,
            timestamps=self._without_gaps(gathered.timestamps),
            values=gathered.values,
        )

    def _takes(self, source: Source) -> bool:
        """Whether events of this source can be taken."""
        try:
            self._owner(source)
        except Reject:
            return False
        return True

    def _refused(self, keys: Sequence[SeriesKey]) -> dict[int, Reject]:
        """The groups that cannot be taken: by number, why."""
        refused: dict[int, Reject] = {}
        for n, (task, model, model_event, allow_locked, metric, variant, worker, label) in enumerate(keys):
            try:
                self._owner((task, model, model_event, allow_locked))
                if len(metric) + len(variant) + len(worker) + len(label or "") > _SHORT_NAME:
                    _check_names(metric=metric, variant=variant, worker=worker, x_axis_label=label or "")
            except Reject as reject:
                refused[n] = reject
        return refused

    def _add_logs(self, groups: list[list[SentLog]], body: bytes) -> None:
        timed = not any(None in [line.timestamp for line in lines] for lines in groups)
        digest = hashlib.blake2b(body, digest_size=16).digest() if timed else None
        for lines in groups:
            try:
                owner = self._owner(source_of(lines[0]))
                if owner.is_model:
                    raise Reject("Task log events are not supported for models", malformed=False)
            except Reject as reject:
                self.rejects.add(reject, len(lines))
                continue
            columns = self._log_columns(owner, lines, digest)
            if _has_short_names(columns):
                self.batch.logs.append(columns)
            elif named := self._named_well(lines):
                self.batch.logs.append(self._log_columns(owner, named, digest))

    def _named_well(self, lines: list[SentLog]) -> list[SentLog]:
        named = []
        for line in lines:
            try:
                _check_names(metric=line.metric, variant=line.variant, worker=line.worker, level=line.level or "")
                named.append(line)
            except Reject as reject:
                self.rejects.add(reject)
        return named

    def _add_sample(self, line: SentSample) -> None:
        try:
            owner = self._owner(source_of(line))
            _check_names(metric=line.metric, variant=line.variant, worker=line.worker, key=line.key or "")
            line.check()
        except Reject as reject:
            self.rejects.add(reject)
            return
        self.batch.samples.append(documents.sample(line, owner, received=self.received, worker=self.worker))

    def _log_columns(self, owner: Owner, lines: list[SentLog], digest: bytes | None) -> LogColumns:
        return LogColumns(
            owner,
            self._timestamps([line.timestamp for line in lines]),
            [line.level for line in lines],
            [line.worker or self.worker for line in lines],
            [line.msg for line in lines],
            [line.iter for line in lines],
            [line.metric for line in lines],
            [line.variant for line in lines],
            digest,
            {n: bytes(line.extra) for n, line in enumerate(lines) if type(line) is OddSentLog and line.extra},
        )

    def _without_gaps(self, given: Int64Array) -> Int64Array:
        """The timestamps, with that of receipt where there is none."""
        if given.min() > NO_TIMESTAMP:
            return given
        return np.where(given == NO_TIMESTAMP, self.received, given)

    def _timestamps(self, given: list[int | None]) -> Int64Array:
        if None in given:
            given = [self.received if timestamp is None else timestamp for timestamp in given]
        return np.array(given, dtype=np.int64)

    def _owner(self, source: Source) -> Owner:
        owner = self._sources.get(source)
        if owner is None:
            owner = self._sources[source] = self._new_owner(source)
        return owner

    def _new_owner(self, source: Source) -> Owner:
        task, model, model_event, allow_locked = source
        id = model or task
        if not id:
            raise Reject("Event must have a 'task' field", malformed=False)
        if len(id.encode()) > MAX_ID_BYTES:
            field = "model" if model else "task"
            raise Reject(f"field '{field}' is longer than {MAX_ID_BYTES} bytes", field=field)
        owner = Owner(self.company, id, model_event or bool(model))
        if Owner(self.company, id, not owner.is_model) in self.locked_allowed:
            raise Contradiction(f"Inconsistent model_event setting in the passed events for {id}")
        if self.locked_allowed.setdefault(owner, allow_locked) != allow_locked:
            raise Contradiction(f"Inconsistent allow_locked setting in the passed events for {id}")
        return owner


def _has_short_names(logs: LogColumns) -> bool:
    """Whether no name can be too long. Looking at the columns is quicker than at the lines."""
    names = {*logs.metrics, *logs.variants, *logs.workers, *logs.levels}
    return all(name is None or len(name) <= _SHORT_NAME for name in names)


def _only_source(columns: Sequence[list[Any]]) -> Source | None:
    """The source of all groups, whose keys have these columns; None if they have several."""
    sources = columns[:4]
    if any(column.count(column[0]) < len(column) for column in sources):
        return None
    task, model, model_event, allow_locked = (column[0] for column in sources)
    return task, model, model_event, allow_locked


def _are_short(columns: Sequence[list[Any]]) -> bool:
    """Whether no group has a name that is too long. False if only a look at each of them can tell."""
    *_, metrics, variants, workers, labels = columns
    has_labels = labels.count(None) < len(labels)
    return not has_labels and sum(max(map(len, names)) for names in (metrics, variants, workers)) <= _SHORT_NAME


def _first(gathered: Gathered, count: int) -> Gathered:
    """The first groups."""
    lengths = gathered.lengths[:count]
    points = sum(lengths)
    columns = (gathered.iters[:points].copy(), gathered.timestamps[:points].copy(), gathered.values[:points].copy())
    return Gathered(gathered.keys[:count], lengths, *columns)


def _without(gathered: Gathered, refused: Collection[int]) -> Gathered:
    """All groups but these."""
    kept = [n for n in range(len(gathered.keys)) if n not in refused]
    points = np.repeat([n not in refused for n in range(len(gathered.keys))], gathered.lengths)
    return Gathered(
        [gathered.keys[n] for n in kept],
        [gathered.lengths[n] for n in kept],
        gathered.iters[points],
        gathered.timestamps[points],
        gathered.values[points],
    )


def _check_names(**names: str) -> None:
    for field_name, name in names.items():
        if len(name) > _SHORT_NAME and len(name.encode()) > MAX_NAME_BYTES:
            raise Reject(f"field '{field_name}' is longer than {MAX_NAME_BYTES} bytes", field=field_name)

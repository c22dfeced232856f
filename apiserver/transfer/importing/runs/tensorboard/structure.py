"""Which run a folder with event files is of, and what its tags are called there.

A folder with event files is a run, unless one of these says that it is a part of the run above it:

    RUN/train, RUN/validation    Keras makes them. They go by their names, unless they are of add_scalars; RUN needs no
                                 event files. The folder is put before the tags: train/epoch_loss.
    RUN/acc/A, RUN/acc_A         add_scalars of tensorboardX and of PyTorch makes them. All values are scalars of a tag,
                                 by which the folder is named: the metric acc with the variant A.
    RUN/1795871019.57            add_hparams makes it, whatever it is called. It has an experiment, the start of a
                                 session, and no values but of the metrics that the experiment names. Of several in one
                                 RUN, the one that was begun first is a part of it; the others are runs of their own.

RUN has event files, but for Keras. A folder below a run whose files hold nothing yet is not decided on, and a run of
nothing but such folders is passed over. Nothing depends on what is in RUN, or on folders that come later.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path

from apiserver.common.protobuf_wire import Malformed
from apiserver.transfer.importing.runs.model import names_of
from apiserver.transfer.importing.runs.protobuf import parsed, text
from apiserver.transfer.importing.runs.tensorboard.messages import Event, Hyperparameters
from apiserver.transfer.importing.runs.tensorboard.records import blocks

_KERAS = ("train", "validation")
#: Most bytes of a folder's files that are looked at.
_LOOK_BYTES = 64 * 2**10
#: Fields of an event that are values, or as good as values.
_HOLDS = ("graph_def", "summary", "log_message", "session_log", "tagged_run_metadata", "meta_graph_def")
#: tensorboardX has such characters of a tag replaced by "_" in the file, but not in the folder's name.
_NOT_IN_TAGS = re.compile(r"[^-/\w.]", re.ASCII)


@dataclass(frozen=True, slots=True)
class Naming:
    """The names of a folder's tags in its run."""

    prefix: str = ""
    variant: str | None = None
    """The variant of all tags, each of which is a metric."""

    def __call__(self, tag: str) -> tuple[str, str]:
        """The metric and the variant."""
        return names_of(self.prefix + tag) if self.variant is None else (self.prefix + tag, self.variant)


@dataclass(frozen=True, slots=True)
class Part:
    """A folder of a run: its name below the run's ("" for the run's own folder), and its event files in order."""

    folder: Path
    name: str
    files: list[Path]
    naming: Naming = Naming()
    metrics: frozenset[str] = frozenset()
    """The tags that add_hparams writes there."""


@dataclass(slots=True)
class _Look:
    """The content of a folder's files, as far as they were looked at."""

    is_empty: bool = True
    tags: set[str] = field(default_factory=set)
    others: bool = False
    """Whether there is anything but scalars and hyperparameters."""
    metrics: set[str] | None = None
    """The metrics that an experiment of hparams names; None without one."""
    is_session: bool = False

    @property
    def is_decided(self) -> bool:
        """Whether it can be no part of a run, whatever comes."""
        return self.others or (len(self.tags) > 1 and self.metrics is None)

    @property
    def is_of_hparams(self) -> bool:
        return self.is_session and not self.others and self.metrics is not None and self.tags <= self.metrics


@dataclass(slots=True)
class Structure:
    """Tells which folders are of which run. It remembers what it decided on."""

    root: Path
    _looks: dict[Path, _Look] = field(default_factory=dict)

    def runs(self, folders: dict[Path, list[Path]]) -> dict[Path, list[Part]]:
        """The runs of folders with event files, by the folder of each. `folders` has each behind those above it."""
        homes: dict[Path, tuple[Path, Naming]] = {}
        hparams: defaultdict[Path, list[Path]] = defaultdict(list)
        undecided: set[Path] = set()
        for folder, files in folders.items():
            above = [parent for parent in folder.parents if parent in homes]
            is_keras = folder != self.root and folder.name in _KERAS
            # RUN/train itself is never of add_scalars: a tag is between a run and the folder of a variant.
            is_open = any(parent != folder.parent for parent in above) if is_keras else bool(above)
            look = self._look(folder, files) if is_open else _Look(is_empty=False)
            if look.is_empty:
                undecided.add(folder)
            if of_scalars := _of_scalars(folder, look, above, homes):
                homes[folder] = of_scalars
            elif is_keras:
                home, naming = homes.get(folder.parent, (folder.parent, Naming()))
                homes[folder] = home, Naming(f"{naming.prefix}{folder.name}/")
            else:
                homes[folder] = folder, Naming()
                if look.is_of_hparams and above:
                    hparams[above[0]].append(folder)
        for parent, sessions in hparams.items():
            homes[min(sessions, key=lambda folder: (folders[folder][0].name, folder.name))] = homes[parent]
        runs = self._parts(homes, folders)
        return {home: parts for home, parts in runs.items() if any(part.folder not in undecided for part in parts)}

    def _parts(self, homes: dict[Path, tuple[Path, Naming]], folders: dict[Path, list[Path]]) -> dict[Path, list[Part]]:
        runs: defaultdict[Path, list[Part]] = defaultdict(list)
        for folder, (home, naming) in homes.items():
            name = "" if folder == home else folder.relative_to(home).as_posix()
            look = self._looks.get(folder, _Look())
            metrics = frozenset(look.metrics or ()) if folder != home and look.is_of_hparams else frozenset[str]()
            runs[home].append(Part(folder, name, folders[folder], naming, metrics))
        return runs

    def _look(self, folder: Path, files: list[Path]) -> _Look:
        if folder not in self._looks:
            look = _look_at(files)
            if look.is_empty:
                return look
            self._looks[folder] = look
        return self._looks[folder]


def each_folder(folders: dict[Path, list[Path]]) -> dict[Path, list[Part]]:
    """Each folder as a run of its own."""
    return {folder: [Part(folder, "", files)] for folder, files in folders.items()}


def _of_scalars(
    folder: Path, look: _Look, above: list[Path], homes: dict[Path, tuple[Path, Naming]]
) -> tuple[Path, Naming] | None:
    """The run of a folder that add_scalars has made."""
    if look.others or look.metrics is not None or len(look.tags) != 1:
        return None
    (tag,) = look.tags
    for parent in above:
        name = folder.relative_to(parent).as_posix()
        for start in (f"{tag}/", f"{tag.replace('/', '_')}_"):
            if len(name) > len(start) and (name.startswith(start) or _NOT_IN_TAGS.sub("_", name).startswith(start)):
                home, naming = homes[parent]
                return home, replace(naming, variant=name[len(start) :])
    return None


def _look_at(files: list[Path]) -> _Look:
    """What the first bytes of the files say. What cannot be read holds something that is to be named."""
    look = _Look()
    left = _LOOK_BYTES
    for path in files:
        try:
            for block in blocks(path, 0, block_bytes=_LOOK_BYTES):
                if block.problems or block.broken:
                    return _Look(is_empty=False, others=True)
                for number in range(len(block.starts)):
                    _take(look, parsed(Event, block.record(number)))
                    if look.is_decided:
                        return look
                left -= block.end - block.at
                if left <= 0:
                    return look
        except (Malformed, OSError):
            return _Look(is_empty=False, others=True)
    return look


def _take(look: _Look, event: Event) -> None:
    """Take an event. Raises Malformed."""
    if any(map(event.HasField, _HOLDS)):
        look.is_empty = False
    for value in event.summary.value:
        plugin = value.metadata.plugin_data
        if plugin.plugin_name == b"hparams":
            _take_hyperparameters(look, parsed(Hyperparameters, plugin.content))
        else:
            is_scalar = value.HasField("tensor") and plugin.plugin_name in (b"", b"scalars")
            look.tags.add(text(value.tag))
            look.others |= not (value.HasField("simple_value") or is_scalar)


def _take_hyperparameters(look: _Look, content: Hyperparameters) -> None:
    if content.HasField("experiment"):
        names = {text(metric.name.tag) for metric in content.experiment.metric_infos}
        look.metrics = names | {_NOT_IN_TAGS.sub("_", name).lstrip("/") for name in names}
    look.is_session |= content.HasField("session_start_info")

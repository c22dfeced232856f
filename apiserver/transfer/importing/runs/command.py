"""`apiserver import tensorboard` and its like: imports the runs of another tracker into a running server."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from apiserver.common.extras import installed_by
from apiserver.transfer.importing.report import ImportFailed, Report
from apiserver.transfer.importing.runs.model import HasProjects, Source
from apiserver.transfer.importing.runs.other_documents import make_projects
from apiserver.transfer.importing.runs.progress import Progress
from apiserver.transfer.importing.runs.server import Server, address
from apiserver.transfer.importing.runs.taking import Taking

#: Reading makes some 100,000 objects at a time, none of them in a cycle. Looking for cycles as often as Python does by
#: itself would take longer than the reading.
_SELDOM = (1_000_000, 20, 20)
#: The modules of the extra `imports`.
_EXTRA = ("google", "google_crc32c", "yaml")
#: By kind of source, the noun of its runs, for the message that there are none.
_LOOKED_FOR = {
    "tensorboard": "event files",
    "mlflow": "runs",
    "wandb": ".wandb files",
    "neptune": "files named <run>_part_<n>.parquet",
    "export": "tasks",
    "table": "points",
}


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """The options of an import: the kind of source, its place, the project, and whether with files, and followed."""

    source: str
    place: str
    project: str | None
    files: bool = False
    follow: bool = False
    metric: str | None = None
    """The metric of a table that names none."""
    each_folder: bool = False
    """Whether each folder of TensorBoard's is a run of its own."""
    report: Path | None = None
    """The file that tells programs of everything, as JSON."""
    restore: bool = False
    """Runs of which the server has deleted or thinned events are read from their start."""


def import_runs(
    options: ImportOptions, api_url: str | None, files_url: str | None, environment: Mapping[str, str]
) -> bool:
    """Import, and say what was imported; returns whether that was everything.

    Raises ImportFailed to give up or if there is nothing to import, and ValueError for options that cannot be meant.
    """
    if options.follow and options.restore:
        raise ValueError("--restore needs an import that ends: give --follow to another one after it")
    if options.report is not None and not options.report.absolute().parent.is_dir():
        raise ValueError(f"--report: there is no folder '{options.report.parent}'")
    server = Server(address(api_url, files_url, environment))
    progress = Progress("events", 0)
    report = Report(progress.say)
    failed = ""
    try:
        source = opened(options)
        server.check()
        progress = Progress(source.unit, 0 if options.follow else source.total())
        report.say = progress.say
        _take(options, source, server, report, progress)
    except ImportFailed as error:
        failed = str(error)
        raise
    finally:
        server.close()
        report.close()
        _write(options, report, failed)
    return not report.problems


def _take(options: ImportOptions, source: Source, server: Server, report: Report, progress: Progress) -> None:
    if isinstance(source, HasProjects):
        make_projects(server, source.projects())
    taking = Taking(server, report, progress, with_files=options.files, restore=options.restore)
    often = gc.get_threshold()
    gc.set_threshold(*_SELDOM)
    try:
        if options.follow:
            taking.follow(source)
        else:
            taking.take(source)
    except KeyboardInterrupt:
        if not options.follow:
            raise
    finally:
        gc.set_threshold(*often)
        progress.clear()
    taking.close()
    if not (options.follow or report.problems or "runs" in report.counts):
        raise ImportFailed(f"no {_LOOKED_FOR[options.source]} found in '{options.place}'")
    if not options.follow and report.problems and not taking.has_any:
        raise ImportFailed("nothing could be imported")


def _write(options: ImportOptions, report: Report, failed: str) -> None:
    """Write the report for programs, if one is asked for. Raises ImportFailed."""
    if options.report is None:
        return
    about = {"source": options.source, "place": options.place, "failed": failed}
    try:
        report.write(options.report, **about, complete=not (failed or report.problems))
    except OSError as error:
        raise ImportFailed(f"the report cannot be written to '{options.report}': {error}") from error


def opened(options: ImportOptions) -> Source:
    """The source that the options name. Raises ValueError; ImportFailed, also where an optional package is missing."""
    try:
        return _opened(options)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        raise ImportFailed(f"{options.source}: reading it needs optional packages: {installed_by('imports')}") from None


def _opened(options: ImportOptions) -> Source:
    place = options.place
    match options.source:
        case "tensorboard":
            from apiserver.transfer.importing.runs.tensorboard.files import TensorboardFolder

            return TensorboardFolder(Path(place), options.project, options.each_folder, options.follow)
        case "mlflow":
            from apiserver.transfer.importing.runs.mlflow.experiments import Mlflow
            from apiserver.transfer.importing.runs.mlflow.opening import store_at

            return Mlflow(store_at(place), options.project, with_files=options.files)
        case "wandb":
            from apiserver.transfer.importing.runs.wandb.runs import WandbFolder

            return WandbFolder(Path(place), options.project)
        case "neptune":
            from apiserver.transfer.importing.runs.neptune import NeptuneFolder

            return NeptuneFolder(Path(place), options.project)
        case "export":
            from apiserver.transfer.importing.runs.exported import ExportFolder

            return ExportFolder(Path(place), options.project)
        case "table":
            from apiserver.transfer.importing.runs.tables.table import TableFile

            return TableFile(Path(place), options.project, options.metric)
    raise ValueError(f"'{options.source}' is no source")

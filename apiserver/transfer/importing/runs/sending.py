"""Sends the parts of one run to its task: in few large requests, in a thread, while the source is read on."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, BinaryIO

from apiserver.common.sizes import counted
from apiserver.events.model import JsonObject
from apiserver.transfer.importing.missing import Missing, Reason
from apiserver.transfer.importing.report import Report, SourceRefused
from apiserver.transfer.importing.runs import bodies
from apiserver.transfer.importing.runs.model import Artifact, Figure, File, Image, Line, Model, Other, Points
from apiserver.transfer.importing.runs.names import file_name
from apiserver.transfer.importing.runs.other_documents import put_model
from apiserver.transfer.importing.runs.overwritten import Repeated, Steps
from apiserver.transfer.importing.runs.progress import Progress
from apiserver.transfer.importing.runs.sent_lines import SentLines
from apiserver.transfer.importing.runs.server import Server

#: Most events of a request, and most bytes of its events other than points.
_POINTS, _LINES, _BYTES = 20_000, 5_000, 4 * 2**20
_LOG = "log lines"
#: The server takes no larger request.
_MOST_BYTES = 15 * 2**20
#: The bytes of artifacts that are written into the task at once: an interrupted import uploads as many again.
_FILE_BYTES = 64 * 2**20
#: Requests that wait to be sent.
_WAITING = 2


@dataclass(frozen=True, slots=True)
class Told:
    """Hears which parts were refused or changed; its functions are called from several threads."""

    report: Report
    miss: Callable[[Missing], None]
    """Called with a part that cannot be sent."""
    refused: Callable[[Missing], None]
    """Called with a part that the server refuses, perhaps after later parts were added."""
    noted: Callable[[str], None]
    """Called with a note for the user, when nothing is missing."""
    mended: Callable[[str], None]
    """Called with the place of something that is tried again."""
    lines_refused: Callable[[int], None]
    """Called with how many lines the server refuses, before more are sent."""


class RunSender:
    """Sends to one task. `sent` says which lines were sent before."""

    def __init__(
        self,
        server: Server,
        task: str,
        folder: str,
        sent: SentLines,
        told: Told,
        progress: Progress,
    ) -> None:
        self._server = server
        self._task = task
        self._folder = folder
        self._told = told
        self._report = told.report
        self._progress = progress
        self._sent = sent
        self._steps: dict[tuple[str, str], Steps] = {}
        """By series, the steps that were added."""
        self._overwritten = 0
        """How many of the points that are kept another point overwrites."""
        self._doubled: Counter[tuple[str, str]] = Counter()
        """By series, the points that another value overwrote since the last flush."""
        self._repeated: dict[tuple[str, str], Repeated] = {}
        self._same: Counter[tuple[str, str]] = Counter()
        """By series, the points that the next point repeats."""
        self._points: list[Points] = []
        self._points_kept = 0
        self._lines: list[Line] = []
        self._samples: list[bytes] = []
        self._bytes_kept = 0
        self._artifacts: list[JsonObject] = []
        self._bytes_put = 0
        """The bytes of these artifacts."""
        self._digests: dict[str, str] | None = None
        """The digests of the task's files by address, once the server was asked for them."""
        self._thread = ThreadPoolExecutor(1)
        self._waiting: deque[Future[None]] = deque()
        self.unsaved = 0
        """Events since `saved` was called."""
        self.changes = False
        """Whether anything is sent: not if all that was added are files that the task has."""
        self.lines = 0
        """The number of lines that were taken, by this import and before; lines that are too long do not count."""

    def add(self, part: Points | Line | Figure | Image | Artifact | Model | Other) -> None:
        """Take a part, and send parts when enough were taken. Raises ImportFailed."""
        self.changes |= not isinstance(part, Artifact)
        match part:
            case Points():
                for start in range(0, len(part.iters), _POINTS):
                    self._add_points(_rows(part, start, start + _POINTS))
            case Line():
                self._add_line(part)
            case Figure():
                self._add_sample(bodies.of_figure(self._task, part), f"plot {part.metric}/{part.variant}")
            case Image():
                self._add_image(part)
            case Artifact():
                self._add_artifact(part)
            case Model():
                self._add_model(part)
            case Other():
                self._add_sample(bodies.of_event(self._task, part.event), str(part.event.get("metric")))

    def flush(self) -> None:
        """Return when the server has everything. Raises ImportFailed."""
        self._send_points()
        self._send_lines()
        self._send_samples()
        while self._waiting:
            self._waiting.popleft().result()
        self._send_artifacts()
        for (metric, variant), count in (+self._doubled).items():
            cause = "a later point has the same step"
            self._told.refused(Missing(Reason.OVERWRITTEN, f"series {metric}/{variant}", cause, count))
        for (metric, variant), count in self._same.items():
            points = counted(count, "points")
            self._told.noted(f"series {metric}/{variant}: {points} came twice, equal in step and value")
        self._doubled.clear()
        self._same.clear()
        self.unsaved = 0

    def close(self) -> None:
        """End the thread; what was not flushed may be lost."""
        self._thread.shutdown(cancel_futures=True)

    # --- points ------------------------------------------------------------------------------------

    def _add_points(self, points: Points) -> None:
        if self._points_kept + len(points.iters) > _POINTS:
            self._send_points()
        self._points.append(points)
        self._points_kept += len(points.iters)
        series = points.metric, points.variant
        if overwritten := self._steps.setdefault(series, Steps()).add(points.iters):
            self._overwritten += overwritten
            self._doubled[series] += overwritten
        if repeated := self._repeated.setdefault(series, Repeated()).add(points.iters, points.values):
            self._doubled[series] -= repeated
            self._same[series] += repeated

    def _send_points(self) -> None:
        if self._points:
            body = bodies.of_points(self._task, self._points)
            self._send(body, "points", self._points_kept, self._overwritten)
            self._points, self._points_kept, self._overwritten = [], 0, 0

    # --- lines -------------------------------------------------------------------------------------

    def _add_line(self, line: Line) -> None:
        if len(line.text) > _BYTES:
            cause = f"a text of {len(line.text):,} characters is too long"
            self._told.miss(Missing(Reason.OVER_LIMIT, f"log {line.metric}", cause))
            return
        self.lines += 1
        if self._sent.has(line):
            return
        self._lines.append(line)
        self._bytes_kept += len(line.text)
        if len(self._lines) >= _LINES or self._bytes_kept >= _BYTES:
            self._send_lines()

    def _send_lines(self) -> None:
        if self._lines:
            self._send(bodies.of_lines(self._task, self._lines), _LOG, len(self._lines))
            self._lines, self._bytes_kept = [], 0

    # --- samples and files -------------------------------------------------------------------------

    def _add_sample(self, body: bytes, name: str) -> None:
        if len(body) > _MOST_BYTES:
            self._told.miss(Missing(Reason.OVER_LIMIT, f"event {name}", f"{len(body):,} bytes are too much"))
            return
        if sum(map(len, self._samples)) + len(body) > _BYTES:
            self._send_samples()
        self._samples.append(body)

    def _send_samples(self) -> None:
        if self._samples:
            self._send(b"".join(self._samples), "plots, images and other events", len(self._samples))
            self._samples = []

    def _add_image(self, image: Image) -> None:
        key = f"_{image.more['key']}" if image.more.get("key") else ""
        name = f"{image.variant}_{image.iter:08d}{key}".replace("/", "_") + image.suffix
        try:
            with image.content.open() as content:
                url = self._server.address_of(file_name(self._folder, "metrics", image.metric, name))
                self._server.put_file(url, content, image.content.size)
        except (OSError, SourceRefused) as error:
            self._told.miss(_failed(f"image {image.metric}/{image.variant}", error))
            return
        self._add_sample(bodies.of_image(self._task, image, url), image.metric)

    def _add_artifact(self, artifact: Artifact) -> None:
        count = self._report.count("artifacts")
        entry: dict[str, Any] = {"type": "custom", "mode": "output", **artifact.about, "key": artifact.name}
        if artifact.content is not None:
            last = artifact.file_name or artifact.name.rpartition("/")[2]
            kinds = ["artifacts"] if entry["mode"] == "output" else ["artifacts", entry["mode"]]
            url = self._server.address_of(file_name(self._folder, *kinds, artifact.name, last))
            place = f"artifact {artifact.name}"
            self._told.mended(place)
            try:
                digest, is_new = self._put_artifact(artifact.content, url)
            except (OSError, SourceRefused) as error:
                self._told.miss(_failed(place, error))
                count.found, count.left = count.found + 1, count.left + 1
                return
            if not (is_new or artifact.about):
                count.found, count.known = count.found + 1, count.known + 1
                return
            entry |= {"uri": url, "content_size": artifact.content.size, "hash": digest}
            self._bytes_put += artifact.content.size
        self.changes = True
        self._artifacts.append(entry)
        if self._bytes_put >= _FILE_BYTES:
            self._send_artifacts()
        count.found, count.taken = count.found + 1, count.taken + 1

    def _send_artifacts(self) -> None:
        if self._artifacts:
            request = {"task": self._task, "artifacts": self._artifacts, "force": True}
            self._server.call("tasks.add_or_update_artifacts", request)
            self._artifacts, self._bytes_put = [], 0

    def _put_artifact(self, file: File, url: str) -> tuple[str, bool]:
        """Upload a file, unless the task has it with the same content. Returns its digest, which the task keeps, and
        whether it is new.
        """
        if self._digests is None:
            self._digests = self._server.digests(self._task)
        if (digest_before := self._digests.get(url)) and self._server.has_file(url, file.size):
            with file.open() as content:
                hashed = _Hashed(content)
                while hashed.read(_BYTES):
                    pass
            if hashed.digest.hexdigest() == digest_before:
                return digest_before, False
        with file.open() as content:
            hashed = _Hashed(content)
            self._server.put_file(url, hashed, file.size)
        return hashed.digest.hexdigest(), True

    def _add_model(self, model: Model) -> None:
        about = dict(model.about)
        self._told.mended(f"model {model.name}")
        try:
            if model.content is not None:
                about["uri"] = self._server.address_of(file_name(self._folder, "models", model.name, model.file_name))
                with model.content.open() as content:
                    self._server.put_file(about["uri"], content, model.content.size)
            if model.kind == "output":
                about["task"] = self._task
            id = put_model(self._server, model, about)
            item = {"task": self._task, "type": model.kind, "name": model.name, "model": id}
            self._server.call("tasks.add_or_update_model", item)
        except (OSError, SourceRefused) as error:
            self._told.miss(_failed(f"model {model.name}", error))
            return
        count = self._report.count("models")
        count.found, count.taken = count.found + 1, count.taken + 1

    # --- the thread --------------------------------------------------------------------------------

    def _send(self, body: bytes, kind: str, events: int, overwritten: int = 0) -> None:
        self.unsaved += events
        while len(self._waiting) >= _WAITING:
            self._waiting.popleft().result()
        self._waiting.append(self._thread.submit(self._post, body, kind, events, overwritten))

    def _post(self, body: bytes, kind: str, events: int, overwritten: int) -> None:
        try:
            answer = self._server.send("events.add_batch", body)
            refused = {str(reason): int(n) for reason, n in answer.get("errors_info", {}).items()}
        except SourceRefused as error:
            refused = {str(error): events}
        if refused and kind == _LOG:
            self._told.lines_refused(sum(refused.values()))
        left = min(events, sum(refused.values()) + overwritten)
        count = self._report.count(kind)
        count.found, count.left, count.taken = count.found + events, count.left + left, count.taken + events - left
        for cause, number in refused.items():
            self._told.refused(Missing(Reason.REFUSED, f"{kind} of task {self._task}", cause, number))
        self._progress.advance(events=events)


def _failed(place: str, error: Exception) -> Missing:
    """A file that could not be sent."""
    is_absent = isinstance(error, FileNotFoundError)
    reason = Reason.REFUSED if isinstance(error, SourceRefused) else Reason.ABSENT if is_absent else Reason.BROKEN
    return Missing(reason, place, str(error))


class _Hashed:
    """A file that is hashed while it is sent. It is sent anew from its beginning."""

    def __init__(self, content: BinaryIO) -> None:
        self._content = content
        self.digest = hashlib.sha256()

    def read(self, size: int) -> bytes:
        data = self._content.read(size)
        self.digest.update(data)
        return data

    def tell(self) -> int:
        return self._content.tell()

    def seek(self, position: int) -> int:
        self.digest = hashlib.sha256()
        return self._content.seek(position)


def _rows(points: Points, start: int, stop: int) -> Points:
    if start == 0 and stop >= len(points.iters):
        return points
    columns = (points.iters[start:stop], points.timestamps[start:stop], points.values[start:stop])
    return Points(points.metric, points.variant, *columns, points.more)

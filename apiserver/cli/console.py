"""`apiserver logs`: prints the console of a task of a running server, and follows it while lines come.

A live stream says that lines came, and then the newest ones are read: all that are at most `WINDOW` older than the
newest line that was printed, because the workers of a task send their lines at different times. Of these, the ones that
were not printed yet are printed:

    printed       10:00:01 "a" of worker 1, 10:00:03 "b" of worker 1
    read again    10:00:01 "a" of worker 1, 10:00:02 "x" of worker 2, 10:00:03 "b" of worker 1
    so            "x" is printed
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TextIO
from urllib.parse import quote, urlencode

import orjson
import urllib3
from urllib3.exceptions import HTTPError

from apiserver.common.server_replies import reason, why_silent
from apiserver.transfer.importing.runs.server import Address

#: Milliseconds.
WINDOW = 10_000
#: The most lines that the server answers for `tail`.
MOST_TAIL = 10_000
#: Seconds between two reads, so that lines that come meanwhile are read together.
_PAUSE = 0.5
#: Seconds after which a silent stream counts as broken: it says something every 15.
_SILENCE = 45.0
#: Seconds before another try, which double up to the second number.
_RETRY, _LONGEST_RETRY = 1.0, 15.0


class LogsFailed(Exception):
    """The console cannot be read; the message says why."""


class _NoTask(LogsFailed):
    """There is no such task, or not any more."""


class _Unavailable(Exception):
    """The server does not answer now; another try may succeed."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The task whose console is wanted, by id or path, how many of its lines (None: all), and whether to go on then."""

    task: str
    tail: int | None = None
    follow: bool = False


def print_logs(wanted: Wanted, where: Address, out: TextIO) -> None:
    """Print the messages of the task's console. With `follow`, go on until the task is deleted. Raises LogsFailed."""
    reader = _Reader(wanted.task, where)
    console = _Console(reader, out)
    try:
        if wanted.follow:
            _follow(reader, console, wanted.tail)
        else:
            console.begin(wanted.tail)
    except _Unavailable as error:
        raise LogsFailed(str(error)) from None


def _follow(reader: _Reader, console: _Console, tail: int | None) -> None:
    """Print what there is once a stream is open, and then what comes. A stream that breaks is opened again."""
    cursor, begun, pause = "", False, _RETRY
    while True:
        try:
            for event, id in reader.events(cursor):
                if event == "gone":
                    return
                if not begun:
                    console.begin(tail)
                elif event in ("log", "reset"):
                    console.go_on()
                    time.sleep(_PAUSE)
                cursor, begun, pause = id or cursor, True, _RETRY
        except (_Unavailable, _NoTask) as error:
            if not begun:
                raise
            if isinstance(error, _NoTask):
                return
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_RETRY)


class _Console:
    """Prints lines, each once."""

    def __init__(self, reader: _Reader, out: TextIO) -> None:
        self._reader = reader
        self._out = out
        self._since: int | None = None
        """Lines of this time or later may still have to be printed."""
        self._printed: Counter[bytes] = Counter()
        """Lines of that time or later that were printed."""

    def begin(self, tail: int | None) -> None:
        """Print all lines, or the last ones."""
        if tail is None:
            return self._take(self._reader.lines())
        lines = list(self._reader.lines(tail=MOST_TAIL))
        first, cut = _first_of_last(lines, tail)
        self._printed.update(lines[:first])
        self._take(lines, cut)
        if len(lines) == MOST_TAIL:  # earlier lines of the same time are not known
            self._since = max(self._since or 0, _time(lines[0]) + 1)

    def go_on(self) -> None:
        """Print lines that came."""
        self._take(self._reader.lines(**({} if self._since is None else {"from": self._since})))

    def _take(self, lines: Iterable[bytes], cut: int = 0) -> None:
        """Print the lines that were not printed yet. They come in the order of their times.

        The first of them is printed without its first `cut` lines of text.
        """
        seen: Counter[bytes] = Counter()
        newest, most = None, 2 * MOST_TAIL
        for line in lines:
            seen[line] += 1
            if seen[line] > self._printed[line]:
                for text in _texts(line)[cut:]:
                    self._out.write(f"{text}\n")
                cut = 0
            newest = _time(line)
            if len(seen) > most:
                seen = _since(seen, newest - WINDOW)
                most = max(most, 2 * len(seen))
        self._out.flush()
        if newest is not None:
            self._since = max(self._since or newest - WINDOW, newest - WINDOW)
            self._printed = _since(seen, self._since)


def _first_of_last(lines: list[bytes], count: int) -> tuple[int, int]:
    """With which line the last `count` lines of text begin, and how many of its own lines of text come before them."""
    first, cut = len(lines), 0
    while count > 0 and first > 0:
        first -= 1
        texts = len(_texts(lines[first]))
        cut, count = max(texts - count, 0), count - texts
    return first, cut


def _texts(line: bytes) -> list[str]:
    """The lines of text of a message."""
    return str(orjson.loads(line)["msg"]).removesuffix("\n").split("\n")


def _since(lines: Counter[bytes], time: int) -> Counter[bytes]:
    return Counter({line: count for line, count in lines.items() if _time(line) >= time})


def _time(line: bytes) -> int:
    timestamp: int = orjson.loads(line)["timestamp"]
    return timestamp


class _Reader:
    """Asks the server for lines and for what changes."""

    def __init__(self, task: str, where: Address) -> None:
        self._url = f"{where.api_url}/data/tasks/{quote(task)}"
        headers = urllib3.make_headers(basic_auth=f"{where.key}:{where.secret}")
        self._pool = urllib3.PoolManager(headers=headers, retries=False, timeout=_SILENCE)

    def lines(self, **query: int) -> Iterator[bytes]:
        """The lines of the console, the oldest first, each as JSON."""
        with self._get(f"log.ndjson?{urlencode(query)}") as answer:
            for line in _lines(answer):
                if line:
                    yield line

    def events(self, cursor: str) -> Iterator[tuple[str, str]]:
        """What changed since the cursor, and what changes: names of events, each with its id if it has one."""
        with self._get("live", {"Last-Event-ID": cursor} if cursor else {}) as answer:
            event = id = ""
            for line in _lines(answer):
                name, _, value = line.decode().partition(": ")
                match name:
                    case "event":
                        event = value
                    case "id":
                        id = value
                    case "" if event or id:
                        yield event, id
                        event = id = ""

    def _get(self, path: str, headers: dict[str, str] | None = None) -> Any:
        """An answer whose content is read while it comes."""
        url = f"{self._url}/{path}"
        sent = {**self._pool.headers, **(headers or {})}
        try:
            answer = self._pool.request("GET", url, headers=sent, preload_content=False)
            if answer.status == 200:
                return answer
            why = reason(answer.read(2**16))
        except (HTTPError, OSError) as error:
            raise _Unavailable(f"the server does not answer: {why_silent(error)}") from error
        if answer.status == 429 or answer.status >= 500:
            raise _Unavailable(f"the server cannot answer now ({answer.status}): {why}")
        raise (_NoTask if answer.status == 404 else LogsFailed)(why)


def _lines(answer: Any) -> Iterator[bytes]:
    """The lines of an answer, as they come."""
    begun = b""
    try:
        for piece in answer.stream(2**16):
            *lines, begun = (begun + piece).split(b"\n")
            yield from lines
    except (HTTPError, OSError) as error:
        raise _Unavailable(f"the server's answer broke off: {error}") from error

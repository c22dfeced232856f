"""`apiserver logs`: what it prints of a console, once and while lines come."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pytest

from apiserver.cli import main
from tests.harness import Served, run

START = 1_700_000_000_000


@pytest.fixture
def task(server: Served) -> str:
    project = server.call("projects.create", {"name": "examples"})["id"]
    made: str = server.call("tasks.create", {"name": "a run", "type": "training", "project": project})["id"]
    return made


def log(server: Served, task: str, *lines: tuple[int, str], worker: str = "gpu-1") -> None:
    """Add lines, each with its time in milliseconds."""
    common = {"type": "log", "task": task, "worker": worker}
    events = [json.dumps({**common, "timestamp": START + time, "msg": message}) for time, message in lines]
    with server.client() as client:
        assert client.post("/events.add_batch", content="\n".join(events)).status_code == 200


@pytest.fixture(autouse=True)
def known(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Say in the environment where the server is, and by which key the command asks it."""
    monkeypatch.setenv("CLEARML_API_HOST", server.api_url)
    monkeypatch.setenv("CLEARML_API_ACCESS_KEY", server.key)
    monkeypatch.setenv("CLEARML_API_SECRET_KEY", server.secret)


@contextmanager
def printing(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command, running."""
    command = [sys.executable, "-m", "apiserver", "logs", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def printed(*arguments: str) -> str:
    """What the command prints, which succeeds, and what it says besides: nothing, as a rule."""
    return run("logs", *arguments)


def lines(out: IO[str] | None, count: int) -> list[str]:
    assert out is not None
    return [out.readline() for _ in range(count)]


def test_all_lines_or_the_last_ones(server: Served, task: str) -> None:
    assert printed(task) == ""
    log(server, task, (2, "b\n"), (1, "a"), (3, "größe"), (3, "größe"))
    assert printed(task) == "a\nb\ngröße\ngröße\n"
    assert printed("examples/a run", "--tail", "3") == "b\ngröße\ngröße\n"
    assert printed(task, "--tail", "1") == "größe\n"
    assert printed(task, "--tail", "0") == ""


def test_the_last_lines_are_those_of_the_text(server: Served, task: str) -> None:
    log(server, task, (1, "a"), (2, "b\nc\nd"), (3, "e\n"), (4, ""), (5, "f\n\ng"))
    whole = printed(task)
    assert whole == "a\nb\nc\nd\ne\n\nf\n\ng\n"
    for count in (1, 2, 3, 6, 7, 8, 20):
        assert printed(task, "--tail", str(count)) == "".join(whole.splitlines(keepends=True)[-count:])


def test_lines_are_followed_while_they_come_also_over_a_restart(server: Served, task: str) -> None:
    log(server, task, (1, "a"), (1, "b"), (1, "b"))
    with printing(task, "-f", "--tail", "2") as process:
        assert lines(process.stdout, 2) == ["b\n", "b\n"]
        log(server, task, (1000, "d"))
        assert lines(process.stdout, 1) == ["d\n"]
        log(server, task, (500, "c"), worker="gpu-2")  # sent late
        assert lines(process.stdout, 1) == ["c\n"]
        server.kill()
        server.start()
        log(server, task, (1000, "d"), (1000, "e"))
        assert lines(process.stdout, 2) == ["d\n", "e\n"]
        server.call("tasks.delete", {"task": task})
        assert process.wait(60) == 0
        assert process.stdout is not None
        assert process.stdout.read() == ""


@pytest.mark.parametrize(
    ("arguments", "reason", "code"),
    [
        (("nothing",), "There is no task 'nothing'", 1),
        (("nothing", "-f"), "There is no task 'nothing'", 1),
        (("t", "--tail", "-1"), "--tail: -1 is not between 0 and 10000", 2),
        (("t", "--server", "http://127.0.0.1:1"), "the server does not answer", 1),
        (("t", "--server", "nowhere"), "'nowhere' is not an address", 2),
    ],
)
def test_what_cannot_be_printed_is_said(
    arguments: tuple[str, ...], reason: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["logs", *arguments]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert reason in said.err


def test_who_follows_a_console_ends_that_by_ctrl_c(server: Served, task: str) -> None:
    log(server, task, (1, "a"))
    with printing(task, "-f") as process:
        assert lines(process.stdout, 1) == ["a\n"]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_reader_who_has_enough_is_no_error(server: Served, task: str) -> None:
    log(server, task, *((n, "x" * 10_000) for n in range(30)))
    with printing(task) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"{'x' * 10_000}\n"
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""

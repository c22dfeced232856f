"""How far a backup is: a bar on a terminal, a line for each step elsewhere. And that it leaves time to others."""

from __future__ import annotations

import io

import pytest

from apiserver.operating.backup.progress import GENTLY, Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_a_bar_and_lines_stand_apart_from_it() -> None:
    out = Terminal()
    shown = Progress(out, redraw_seconds=0)
    shown.step("events/events.db", 1000)
    shown.advance(500)
    shown.say("left out: a link")
    shown.step("files", 10)
    shown.end()
    first, line, second, rest = out.getvalue().split("\n")
    assert [f"[{'#' * count:<30}]" in first for count in (0, 15, 30)] == [True] * 3
    assert " 50% of " in first
    assert line == "left out: a link"
    assert second.startswith("\rfiles ")
    assert rest == ""


def test_elsewhere_each_step_is_a_line() -> None:
    out = io.StringIO()
    shown = Progress(out)
    shown.step("events/events.db", 2**20)
    shown.advance(2**19)
    shown.step("files")
    shown.end()
    assert out.getvalue().splitlines() == ["events/events.db (1.0 MB)", "files"]


def test_it_rests_four_times_as_long_as_it_worked() -> None:
    now, rests = [0.0], []

    def sleep(seconds: float) -> None:
        rests.append(seconds)
        now[0] += seconds

    shown = Progress(io.StringIO(), share=GENTLY, clock=lambda: now[0], sleep=sleep)
    for worked in (1.0, 0.25):
        now[0] += worked
        shown.advance(2**20)
    assert rests == pytest.approx([4.0, 1.0])

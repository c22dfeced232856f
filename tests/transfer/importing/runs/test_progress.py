"""How far an import is: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import io

from apiserver.transfer.importing.runs.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_a_bar_below_the_lines() -> None:
    stream = Terminal()
    shown = Progress("bytes", 1000, stream, redraw_seconds=0)
    shown.advance(done=500, events=7)
    shown.say("a line")
    shown.advance(done=700)
    shown.clear()
    bar, line, full = stream.getvalue().replace("\r\x1b[K", "\n").strip().split("\n")
    assert bar.startswith(f"[{'█' * 15}{' ' * 15}] 500 of 1,000 bytes, 7 events, ")
    assert line == "a line"
    assert full.startswith(f"[{'█' * 30}] 1,000 of 1,000 bytes")


def test_elsewhere_there_are_lines_now_and_then() -> None:
    stream = io.StringIO()
    shown = Progress("bytes", 0, stream)
    shown.advance(done=1, events=1)
    assert stream.getvalue() == ""
    shown = Progress("bytes", 0, stream, say_seconds=0)
    shown.advance(done=1, events=1234)
    assert stream.getvalue().startswith("1,234 events, ")
    assert stream.getvalue().endswith("/s\n")

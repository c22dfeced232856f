"""What an import says of what it could not import."""

from __future__ import annotations

from apiserver.transfer.importing.report import Report


def test_names_from_files_of_others_do_not_command_the_terminal() -> None:
    said: list[str] = []
    report = Report(said.append)
    report.problem("run", "\x1b[2Jrun ü", "line 1\nline 2")
    report.note("\x07left out")
    report.no_place("plugin", "\x9b31mred")
    report.close()
    assert said == [
        "problem: run \\x1b[2Jrun ü: line 1\\nline 2",
        "note: \\x07left out",
        "not mapped: 1 × plugin (\\x9b31mred)",
        "missing: 1 broken, 1 no place",
    ]

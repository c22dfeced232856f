"""`audit`: prints and checks the audit log of the data folder; and what commands say of themselves in it."""

from __future__ import annotations

import argparse
import getpass
import json
import sys
from contextlib import suppress
from itertools import islice
from typing import Any

from apiserver.cli.command import CommandError, Commands, add_command, say, say_progress, whole_number
from apiserver.common.escaping import shown
from apiserver.settings.settings import Settings, SettingsError
from apiserver.stores.data_folder import DataFolder, DataFolderError


def add(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the command."""
    audit = add_command(commands, "audit", _audit, "print the audit log, or check it", ("data",))
    audit.add_argument("--check", action="store_true", help="check that no line was changed or is missing; else exit 1")
    audit.add_argument("--since", default="", metavar="TIME", help="a time in UTC, or its beginning: 2026-11-24T15")
    audit.add_argument("--user", default="", help="the id or the name of a user")
    audit.add_argument("--action", default="", help="an action, or how it begins: tasks.")
    most = "the newest N lines; 100 without it; 0: all"
    audit.add_argument("--limit", type=whole_number, default=100, metavar="N", help=most)
    audit.add_argument("--json", action="store_true", help="print the lines as they are kept")


def _audit(settings: Settings, options: argparse.Namespace) -> None:
    from apiserver.operating.audit.reading import Wanted, check_time, read

    try:
        if options.since:
            check_time(options.since)
    except ValueError as error:
        raise SettingsError(f"--since: {error}") from None
    folder = DataFolder(settings.data)
    try:
        folder.require()
        if options.check:
            return _check(folder)
        lines = read(folder.audit, Wanted(since=options.since, user=options.user, action=options.action))
        for line in islice(lines, options.limit or None):
            say(json.dumps(line) if options.json else _said(line))
    except DataFolderError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"cannot read the audit log: {error}") from error


def _check(folder: DataFolder) -> None:
    from apiserver.common.sizes import counted
    from apiserver.operating.audit.checking import check

    checked = check(folder.audit)
    for note in checked.notes:
        say_progress(f"note: {note}")
    if checked.problems:
        raise CommandError("\n".join(checked.problems))
    say(
        f"{counted(checked.lines, 'lines')}, numbers {checked.first} to {checked.last};"
        f" the hash of the last is {checked.last_hash}"
    )


def _said(line: dict[str, Any]) -> str:
    who = line.get("name") or line.get("user")
    by = f" by {who}" if who else ""
    key = f" (key {line['key']})" if line.get("key") else ""
    origin = f" from {line['address']}" if line.get("address") else ""
    times = f", {line['times']} times" if line.get("times", 1) != 1 else ""
    what = json.dumps(line.get("what")) if line.get("what") else ""
    text = f"{line['time'][:19]} {line['code']} {line['action']}{by}{key}{origin}{times}"
    return shown(f"{text} {what}".rstrip())


def note(settings: Settings, action: str, *, company: str = "", **what: Any) -> None:
    """Note in the audit log what a command did, if the log is kept in files. That it cannot be written is no error.

    `company` is that of what was acted on, the default company if it is "".
    """
    from apiserver.operating.audit.entries import Entry
    from apiserver.operating.audit.files import AuditFiles

    if settings.audit != "file" or not settings.data.is_dir():
        return
    with suppress(KeyError, OSError):  # an account without a name
        name = getpass.getuser()
        entry = Entry(action, company=company or settings.company, name=f"{name}, on the command line", what=what)
        try:
            AuditFiles(DataFolder(settings.data).audit, most_bytes=settings.audit_bytes).append([entry])
        except OSError as error:
            sys.stderr.write(f"apiserver: the audit log was not written: {error}\n")

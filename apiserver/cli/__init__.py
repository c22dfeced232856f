"""The command line: `apiserver serve`, `config`, `migrate`, `backup`, `restore`, `doctor`, `copy`, `import` and others.

Each command has its flags beside what it does, in the module of its kind. What a command needs is imported when it
runs, so that each starts fast. Exit codes: 0 success, 1 the command failed, 2 wrong usage or settings, 130 it
was interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from apiserver import __version__
from apiserver.cli import auditing, backups, operations, retention, schemas, serving, transfers, users
from apiserver.cli.command import CommandError, Run
from apiserver.common.commit import commit
from apiserver.settings.settings import SettingsError, setting_fields
from apiserver.settings.sources import load
from apiserver.stores.engines import check

if TYPE_CHECKING:
    from apiserver.server.bounds import Bounds


def main(arguments: Sequence[str] | None = None, bounds: Bounds | None = None) -> int:
    """Run the command line; returns the exit code. `bounds`: the limits of a server, where they are others."""
    options, unknown = command_line().parse_known_args(arguments)
    if unknown:  # the command's own parser says which flags it has
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    options.bounds = bounds
    os.umask(0o077)  # other users may not read the files that a command makes, whatever folder they are in
    flags = {item.name: getattr(options, item.name, None) for item in setting_fields()}
    try:
        run: Run = options.command
        settings = load(flags, os.environ, options.config)
        check(settings)
        run(settings, options)
        sys.stdout.flush()
    except SettingsError as error:
        return _fail(error, 2)
    except CommandError as error:
        return _fail(error, error.code)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except BrokenPipeError:  # nobody reads the output any more, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _fail(error: Exception | str, code: int) -> int:
    sys.stderr.write(f"apiserver: {error}\n")
    return code


def command_line() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(prog="apiserver", description="A self-hosted, ClearML-compatible events server.")
    made_of = f" (commit {commit()})" if commit() else ""
    parser.add_argument("--version", action="version", version=f"apiserver {__version__}{made_of}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for module in (serving, schemas, backups, transfers, operations, retention, auditing, users):
        module.add(commands)
    return parser

"""What all commands share: how they get their flags, how they fail, and what they print."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from apiserver.settings.settings import Settings, setting_fields

Commands = argparse._SubParsersAction  # what `add_subparsers` returns has no public name
#: Does what a command is for. It gets the settings, and the command's own flags.
Run = Callable[[Settings, argparse.Namespace], None]

ENGINE_FLAGS = ("events", "documents")
DATA_FLAGS = ("data", "documents")


class CommandError(Exception):
    """The command failed; the message tells the user why, and `code` is the exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


def add_command(
    commands: Commands[argparse.ArgumentParser], name: str, run: Run, help: str, flags: Sequence[str] = ()
) -> argparse.ArgumentParser:
    """A command that takes the settings named in `flags`, and a file of settings. Returns its parser."""
    parser = commands.add_parser(name, help=help, description=help)
    parser.set_defaults(command=run, parser=parser)
    parser.add_argument("--config", type=Path, metavar="FILE", help="a TOML file of settings")
    for item in setting_fields():
        if item.name in flags:
            parser.add_argument(f"--{item.name.replace('_', '-')}", metavar="VALUE", help=item.metadata["help"])
    return parser


def add_server(parser: argparse.ArgumentParser) -> None:
    """The flags of a command that talks to a running server and to its file server."""
    parser.add_argument("--server", metavar="URL", help="the server's API (CLEARML_API_HOST, or ~/clearml.conf)")
    parser.add_argument("--files-server", metavar="URL", help="its file server; by default URL/files")


def whole_number(text: str) -> int:
    """The number of a flag, from 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 0")
    return int(text)


def say(line: str) -> None:
    """Print a line of the result at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def say_progress(line: str) -> None:
    """Print a line about the work to standard error, as standard output has the result alone."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()

"""The command line: `apiserver serve`, `config`, `migrate`, `copy`, `import`, `export`, `logs` and `user`.

Exit codes: 0 success, 1 the command failed, 2 wrong usage or settings.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import io
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from apiserver import __version__
from apiserver.engines import check, document_engine, event_engine, places
from apiserver.settings import EMBEDDED, Settings, SettingsError, load, masked, setting_fields

if TYPE_CHECKING:
    from apiserver.importing.sources import ClearmlSource
    from apiserver.services.access.credentials import Credential
    from apiserver.stores.documents.base import DocumentStore
    from apiserver.stores.documents.query import Document

Result = TypeVar("Result")

_SERVE_FLAGS = (
    *("host", "port", "files_port", "data", "events", "documents", "consistency", "migrate_at_start", "workers"),
    *("durability", "log_level", "log_format"),
)
_DATA_FLAGS = ("data", "documents")
_ENGINE_FLAGS = ("events", "documents")

#: By what runs can be imported from beside ClearML: the name of the place, what the place is, and what is imported.
_RUN_SOURCES = {
    "tensorboard": (
        "DIR",
        "a folder; event files are looked for in it and below it",
        "runs from TensorBoard's event files",
    ),
    "mlflow": ("PATH|URL", "a folder mlruns, a file mlflow.db, or the address of a server", "runs from MLflow"),
    "wandb": ("DIR", "a folder; all .wandb files below it are read", "runs from the local files of W&B"),
    "neptune": ("DIR", "a folder that neptune-exporter wrote", "runs from Neptune, as neptune-exporter wrote them"),
    "export": ("DIR", "a folder that `apiserver export` wrote", "tasks that `apiserver export` wrote"),
    "table": ("FILE", "a file: CSV with a header, NDJSON or Parquet", "points from a table: CSV, NDJSON or Parquet"),
}
_GROWING_SOURCES = ("tensorboard", "wandb")
#: Their runs do not say which project they are of.
_ONE_PROJECT = ("tensorboard", "table")


class CommandError(Exception):
    """The command failed; the message tells the user why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    options = command_line().parse_args(arguments)
    os.umask(0o077)  # other users may not read the files that a command makes, whatever folder they are in
    flags = {item.name: getattr(options, item.name, None) for item in setting_fields()}
    try:
        command: Callable[[Settings, argparse.Namespace], None] = options.command
        settings = load(flags, os.environ, options.config)
        check(settings)
        command(settings, options)
        sys.stdout.flush()
    except SettingsError as error:
        return _fail(error, 2)
    except CommandError as error:
        return _fail(error, 1)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # nobody reads the output any more, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _fail(error: Exception, code: int) -> int:
    sys.stderr.write(f"apiserver: {error}\n")
    return code


def command_line() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(prog="apiserver", description="A self-hosted, ClearML-compatible events server.")
    parser.add_argument("--version", action="version", version=f"apiserver {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _command(commands, "serve", _serve, "run the server", _SERVE_FLAGS)
    _command(commands, "config", _config, "print the effective settings, secrets masked", _SERVE_FLAGS)
    migrate = _command(commands, "migrate", _migrate, "bring the schemas of the engines up to date", _ENGINE_FLAGS)
    migrate.add_argument("--check", action="store_true", help="only say what would be done; exit code 1 if anything")
    copy = _command(commands, "copy", _copy, "copy all events and documents to other stores", ("data", *_ENGINE_FLAGS))
    for flag in ("from", "to"):
        meaning = f"{places()}; by default, what the settings name"
        copy.add_argument(f"--{flag}", dest=f"copy_{flag}", nargs="+", default=[], metavar="PLACE", help=meaning)
    _add_imports(commands)
    export = _command(commands, "export", _export, "write a project of a running server to a folder", ())
    export.add_argument("project", metavar="PROJECT", help="its name or its id; projects below it are exported, too")
    export.add_argument("--to", required=True, type=Path, metavar="DIR", help="the folder, which may have an export")
    export.add_argument("--files", action="store_true", help="also artifacts and images on this server")
    _add_server(export)
    shown = _command(commands, "logs", _logs, "print the console of a task of a running server", ())
    shown.add_argument("task", metavar="TASK", help="the task's id, or its project's name and its own: project/task")
    shown.add_argument("-f", "--follow", action="store_true", help="go on while lines come, until it is ended")
    shown.add_argument("--tail", type=int, metavar="N", help="only the last N lines, 10000 at most")
    shown.add_argument("--server", metavar="URL", help="the server's API (CLEARML_API_HOST, or ~/clearml.conf)")
    about = "print a link that signs the admin in with a browser, once, within ten minutes"
    _command(commands, "link", _link, about, ("host", "port", *_DATA_FLAGS))
    user = commands.add_parser("user", help="manage users and their access keys")
    actions = user.add_subparsers(required=True, metavar="ACTION")
    add = _command(actions, "add", _user_add, "add a user and print an access key", _DATA_FLAGS)
    add.add_argument("name")
    add.add_argument("--role", choices=("user", "admin"), default="user")
    _command(actions, "list", _user_list, "list users and their access keys", _DATA_FLAGS)
    rotate = _command(actions, "rotate", _user_rotate, "replace a user's access keys, or one key", _DATA_FLAGS)
    rotate.add_argument("name", help="name of the user, or one access key")
    revoke = _command(actions, "revoke", _user_revoke, "take an access key out of use", _DATA_FLAGS)
    revoke.add_argument("key")
    password = _command(actions, "password", _user_password, "ask for a password and give it to a user", _DATA_FLAGS)
    password.add_argument("name")
    sessions = _command(actions, "sessions", _user_sessions, "list logins that go on, and end them", _DATA_FLAGS)
    sessions.add_argument("name", nargs="?", help="name of the user; everybody's if it is left out")
    sessions.add_argument("--end", nargs="*", metavar="ID", help="end these logins; all that are listed, without an id")
    _command(actions, "hash", _user_hash, "ask for a password and print its hash, for the setting users", ())
    return parser


def _add_imports(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command `import`, with a command for each source, and the older name of `import clearml`."""
    imports = commands.add_parser("import", help="import from other trackers, tables or servers")
    sources = imports.add_subparsers(required=True, metavar="SOURCE")
    engines = ("data", *_ENGINE_FLAGS)
    help = "take over all data of a ClearML server"
    _add_clearml_flags(_command(sources, "clearml", _import_clearml, help, engines))
    _add_clearml_flags(_command(commands, "import-clearml", _import_clearml, f"{help} (import clearml)", engines))
    for name, (place, about, what) in _RUN_SOURCES.items():
        source = _command(sources, name, _import_runs, f"import {what}", ())
        source.set_defaults(source=name)
        source.add_argument("place", metavar=place, help=about)
        belongs = "the project of the tasks" if name in _ONE_PROJECT else "a project; the runs' own are put below it"
        source.add_argument("--project", metavar="NAME", help=belongs)
        source.add_argument("--files", action="store_true", help="import artifacts, too")
        if name in _GROWING_SOURCES:
            source.add_argument("--follow", action="store_true", help="go on while runs grow, until you press Ctrl-C")
        if name == "table":
            source.add_argument("--metric", metavar="NAME", help="the metric of a table that has just step and value")
        _add_server(source)


def _add_server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--server", metavar="URL", help="the server's API (CLEARML_API_HOST, or ~/clearml.conf)")
    parser.add_argument("--files-server", metavar="URL", help="its file server; by default URL/files")


def _add_clearml_flags(clearml: argparse.ArgumentParser) -> None:
    sources = {
        "mongodb": "its MongoDB: mongodb://[user[:password]@]host[:27017]",
        "elasticsearch": "its Elasticsearch: http[s]://[user[:password]@]host:9200",
        "api": "instead of these two, its API: http[s]://host[:8008]; the access key is in CLEARML_API_ACCESS_KEY and "
        "CLEARML_API_SECRET_KEY",
    }
    for flag, meaning in sources.items():
        clearml.add_argument(f"--{flag}", metavar="ADDRESS", help=meaning)
    clearml.add_argument(
        "--files", type=Path, metavar="FOLDER", help="the folder of its file server, to copy files, too"
    )
    clearml.add_argument(
        "--replace-url",
        action="append",
        default=[],
        metavar="OLD=NEW",
        help="replace OLD by NEW where addresses of files begin with it; can be given more than once",
    )


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    run: Callable[[Settings, argparse.Namespace], None],
    help: str,
    flags: Sequence[str],
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=help, description=help)
    parser.set_defaults(command=run)
    parser.add_argument("--config", type=Path, metavar="FILE", help="a TOML file of settings")
    for item in setting_fields():
        if item.name in flags:
            parser.add_argument(f"--{item.name.replace('_', '-')}", metavar="VALUE", help=item.metadata["help"])
    return parser


# --- serve and config -------------------------------------------------------------------------------


def _config(settings: Settings, options: argparse.Namespace) -> None:
    for name, value in masked(settings).items():
        sys.stdout.write(f"{name} = {value}\n")


def _serve(settings: Settings, options: argparse.Namespace) -> None:
    gc.disable()  # a start makes no garbage, and looking for some would take a tenth of its time
    from apiserver import logs, serve

    logs.setup(settings.log_level, settings.log_format)
    try:
        serve.run(settings)
    except serve.CannotServe as error:
        raise CommandError(str(error)) from error


# --- migrate ----------------------------------------------------------------------------------------


def _migrate(settings: Settings, options: argparse.Namespace) -> None:
    from apiserver.stores.documents.base import DocumentStoreError
    from apiserver.stores.events.base import EventStoreError
    from apiserver.stores.migrations import SchemaError

    try:
        up_to_date = asyncio.run(_migrated(settings, checking=options.check))
    except (SchemaError, EventStoreError, DocumentStoreError) as error:
        raise CommandError(str(error)) from error
    if not up_to_date:
        raise CommandError("the schemas are not what this version needs")


async def _migrated(settings: Settings, *, checking: bool) -> bool:
    """Apply and print all missing steps, or only print them; returns whether the schemas are up to date now."""
    from apiserver.stores.migrations import migrate, pending

    up_to_date = True
    for setting, engine in (("events", event_engine(settings)), ("documents", document_engine(settings))):
        schema = engine.schema()
        if schema is None:
            scheme = getattr(settings, setting).partition(":")[0]
            _say_line(f"{setting}: {scheme}, so a server brings the schema up to date by itself")
            continue
        async with schema as (target, steps):
            missing = await pending(target, steps) if checking else []
            for step in [] if checking else await migrate(target, steps):
                _say_line(f"{setting}: {target.name}: {step.name} is applied")
            problems = [f"{step.name} is to be applied" for step in missing] or await target.problems(steps)
            for problem in problems or ["up to date"]:
                _say_line(f"{setting}: {target.name}: {problem}")
            up_to_date &= not problems
    return up_to_date


# --- copy -------------------------------------------------------------------------------------------


def _copy(settings: Settings, options: argparse.Namespace) -> None:
    from apiserver.copying.locations import copy, location
    from apiserver.copying.retrying import CopyError
    from apiserver.data_folder import DataFolderError
    from apiserver.stores.documents.base import DocumentStoreError
    from apiserver.stores.events.base import EventStoreError

    if not options.copy_from and not options.copy_to:
        raise SettingsError("--from or --to: say where to copy from, or where to; the settings name the other")
    try:
        source, target = location(options.copy_from, settings), location(options.copy_to, settings)
    except ValueError as error:
        raise SettingsError(f"--from, --to: {error}") from None
    try:
        asyncio.run(copy(source, target, _say_line))
    except (CopyError, DataFolderError, EventStoreError, DocumentStoreError) as error:
        raise CommandError(str(error)) from error


def _say_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


# --- import -----------------------------------------------------------------------------------------


def _import_runs(settings: Settings, options: argparse.Namespace) -> None:
    from apiserver.importing.report import ImportFailed
    from apiserver.importing.runs.command import Wanted, import_runs

    wanted = Wanted(
        *(options.source, options.place, options.project, options.files),
        follow=getattr(options, "follow", False),
        metric=getattr(options, "metric", None),
    )
    try:
        complete = import_runs(wanted, options.server, options.files_server, os.environ)
    except ValueError as error:
        raise SettingsError(f"import {options.source}: {error}") from error
    except ImportFailed as error:
        raise CommandError(str(error)) from error
    if not complete:
        raise CommandError("not everything could be imported")


def _export(settings: Settings, options: argparse.Namespace) -> None:
    from apiserver.exporting.command import export
    from apiserver.importing.report import ImportFailed

    servers = {"api_url": options.server, "files_url": options.files_server, "said": os.environ}
    try:
        complete = export(options.project, options.to, files=options.files, **servers)
    except ValueError as error:
        raise SettingsError(f"export: {error}") from error
    except (ImportFailed, OSError) as error:
        raise CommandError(str(error)) from error
    if not complete:
        raise CommandError("not everything could be exported")


def _import_clearml(settings: Settings, options: argparse.Namespace) -> None:
    from apiserver.copying.retrying import CopyError
    from apiserver.data_folder import DataFolderError
    from apiserver.importing.command import import_clearml
    from apiserver.importing.report import ImportFailed
    from apiserver.importing.urls import replacements
    from apiserver.stores.documents.base import DocumentStoreError
    from apiserver.stores.events.base import EventStoreError
    from apiserver.stores.files.disk import FileStoreError

    try:
        source, urls = _source(options), replacements(options.replace_url)
    except ValueError as error:
        raise SettingsError(f"import clearml: {error}") from error
    try:
        complete = asyncio.run(import_clearml(source, options.files, settings, urls, _say_on_stderr))
    except (ImportFailed, CopyError, DataFolderError, EventStoreError, DocumentStoreError, FileStoreError) as error:
        raise CommandError(str(error)) from error
    if not complete:
        raise CommandError("not everything could be imported")


def _source(options: argparse.Namespace) -> ClearmlSource:
    """The source that the options name. ValueError if they name none or two."""
    from apiserver.importing.sources import Databases, OverApi, elasticsearch_of

    if options.mongodb and options.elasticsearch and not options.api:
        return Databases(options.mongodb, elasticsearch_of(options.elasticsearch))
    if not options.api or options.mongodb or options.elasticsearch:
        raise ValueError("give --mongodb and --elasticsearch, or --api")
    key, secret = (os.environ.get(f"CLEARML_API_{name}_KEY", "") for name in ("ACCESS", "SECRET"))
    if not (key and secret and "://" in options.api):
        raise ValueError("--api needs http[s]://…, and CLEARML_API_ACCESS_KEY and CLEARML_API_SECRET_KEY")
    return OverApi(options.api, key, secret)


def _say_on_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


# --- logs -------------------------------------------------------------------------------------------


def _logs(settings: Settings, options: argparse.Namespace) -> None:
    from apiserver.console import MOST_TAIL, LogsFailed, Wanted, print_logs
    from apiserver.importing.runs.server import address

    if options.tail is not None and not 0 <= options.tail <= MOST_TAIL:
        raise SettingsError(f"--tail: {options.tail} is not between 0 and {MOST_TAIL}")
    try:
        where = address(options.server, None, os.environ)
    except ValueError as error:
        raise SettingsError(f"logs: {error}") from error

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may not have all characters
    try:
        print_logs(Wanted(options.task, options.tail, options.follow), where, sys.stdout)
    except LogsFailed as error:
        raise CommandError(str(error)) from error


# --- link -------------------------------------------------------------------------------------------


def _link(settings: Settings, options: argparse.Namespace) -> None:
    from apiserver.client_configuration import api_address
    from apiserver.services.access.sign_in_links import new_path

    if settings.web_url or not settings.viewer:
        raise CommandError("the server has no pages, because of the settings viewer and web_url")
    try:
        path = _with_documents(settings, lambda documents: new_path(documents, settings.company))
    except LookupError as error:
        raise CommandError(f"{error}: the first start of the server makes one") from None
    _say_line(f"{api_address(settings)}{path}")


# --- users ------------------------------------------------------------------------------------------


def _user_add(settings: Settings, options: argparse.Namespace) -> None:
    async def add(documents: DocumentStore) -> Credential:
        from apiserver.services.access.credentials import create_user
        from apiserver.stores.documents.base import DuplicateDocument

        try:
            _, credential = await create_user(documents, settings.company, options.name, options.role)
        except DuplicateDocument:
            raise CommandError(f"there is a user named '{options.name}' already") from None
        return credential

    if not options.name.strip():
        raise CommandError("a user needs a name")
    _print_credential(settings, _with_documents(settings, add))


def _user_list(settings: Settings, options: argparse.Namespace) -> None:
    async def listed(documents: DocumentStore) -> list[Document]:
        from apiserver.services.access.credentials import list_users

        return await list_users(documents, settings.company)

    for user in _with_documents(settings, listed):
        keys = ", ".join(credential["key"] for credential in user["credentials"]) or "no access key"
        sys.stdout.write(f"{_printable(user['name'])} ({user['role']}): {keys}\n")


def _user_rotate(settings: Settings, options: argparse.Namespace) -> None:
    async def rotated(documents: DocumentStore) -> Credential:
        from apiserver.services.access.credentials import UnknownUser, rotate

        try:
            return await rotate(documents, settings.company, options.name)
        except UnknownUser:
            raise CommandError(f"there is no user or access key '{options.name}'") from None

    _print_credential(settings, _with_documents(settings, rotated))


def _user_revoke(settings: Settings, options: argparse.Namespace) -> None:
    async def revoked(documents: DocumentStore) -> int:
        from apiserver.services.access.credentials import revoke

        return await revoke(documents, settings.company, options.key)

    if not _with_documents(settings, revoked):
        raise CommandError(f"there is no access key '{options.key}'; `apiserver user list` shows them")


def _user_password(settings: Settings, options: argparse.Namespace) -> None:
    from apiserver.passwords import check_name

    async def give(documents: DocumentStore) -> None:
        from apiserver.services.access.password_login import set_password

        user = await documents.find_one("users", {"company": settings.company, "name": options.name})
        if user is None:
            raise CommandError(f"there is no user '{options.name}'")
        await set_password(documents, user, hashed)

    try:
        check_name(options.name)
    except ValueError as error:
        raise CommandError(str(error)) from None
    hashed = _hash_of_password()
    _with_documents(settings, give)


def _user_sessions(settings: Settings, options: argparse.Namespace) -> None:
    async def listed(documents: DocumentStore) -> None:
        from apiserver.services.access.sessions import end_sessions, sessions_of

        users = await documents.find("users", {"company": settings.company}, projection=("id", "name"))
        names: dict[str, str] = {user["id"]: user["name"] for user in users}
        if options.name is not None and options.name not in names.values():
            raise CommandError(f"there is no user '{options.name}'")
        sessions = await sessions_of(documents, settings.company)
        sessions = [item for item in sessions if options.name in (None, names.get(item["user"]))]
        if options.end is None:
            for item in sessions:
                _say_line(_session_line(item, names.get(item["user"]) or str(item["user"])))
            return
        if unknown := set(options.end) - {item["id"] for item in sessions}:
            raise CommandError(f"there is no session {', '.join(sorted(unknown))}")
        ended = [item for item in sessions if not options.end or item["id"] in options.end]
        _say_line(f"{await end_sessions(documents, ended)} ended")

    _with_documents(settings, listed)


def _session_line(session: Document, name: str) -> str:
    times = " ".join(f"{field} {session[field][:19]}" for field in ("created", "last_used", "expires"))
    where = f"{session['address']} {session['worker']} {session['agent']}".strip()
    return f"{session['id']} {_printable(name)}: {times} from {_printable(where)}"


def _printable(text: str) -> str:
    """Text that others have chosen, without line breaks and control characters."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _user_hash(settings: Settings, options: argparse.Namespace) -> None:
    sys.stdout.write(f"{_hash_of_password()}\n")


def _hash_of_password() -> str:
    """The hash of a password: typed twice, without an echo, or else the first line of standard input."""
    import getpass

    from apiserver.passwords import hash_password

    if sys.stdin.isatty():
        password = getpass.getpass("Password: ")
        if getpass.getpass("Again: ") != password:
            raise CommandError("the two passwords differ")
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    try:
        return hash_password(password)
    except ValueError as error:
        raise CommandError(str(error)) from None


def _with_documents(settings: Settings, work: Callable[[DocumentStore], Awaitable[Result]]) -> Result:
    """The result of `work`, which gets the opened document store of the settings. A server may be running on it."""
    from apiserver.data_folder import DataFolder, DataFolderError
    from apiserver.services.access.defaults import ensure_defaults
    from apiserver.stores.documents.base import DocumentStoreError

    async def run() -> Result:
        folder = DataFolder(settings.data)
        if settings.documents == EMBEDDED:
            folder.make()
        documents = document_engine(settings).store(folder)
        await documents.open()
        try:
            await ensure_defaults(documents, settings)
            return await work(documents)
        finally:
            await documents.close()

    try:
        return asyncio.run(run())
    except (DataFolderError, DocumentStoreError) as error:
        raise CommandError(str(error)) from error


def _print_credential(settings: Settings, credential: Credential) -> None:
    from apiserver.client_configuration import client_configuration

    sys.stdout.write(client_configuration(settings, credential.key, credential.secret).conf())

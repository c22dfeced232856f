"""`user`: users, their access keys, passwords and logins."""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from apiserver.cli.auditing import note
from apiserver.cli.command import DATA_FLAGS, CommandError, Commands, add_command, say, say_progress
from apiserver.cli.documents import with_documents
from apiserver.common.escaping import shown
from apiserver.settings.settings import Settings

if TYPE_CHECKING:
    from apiserver.rpc.call import Grant
    from apiserver.services.access.credentials import Credential
    from apiserver.stores.documents.base import DocumentStore
    from apiserver.stores.documents.query import Document


def add(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the command, with a command for each thing to do."""
    user = commands.add_parser("user", help="manage users and their access keys")
    actions = user.add_subparsers(required=True, metavar="ACTION")
    new = add_command(actions, "add", _user_add, "add a user and print an access key", DATA_FLAGS)
    new.add_argument("name")
    new.add_argument("--role", choices=("user", "admin"), default="user")
    new.add_argument("--service", action="store_true", help="a service account: nobody signs in with a password")
    _add_grant(new)
    key = add_command(actions, "key", _user_key, "make one more access key for a user", DATA_FLAGS)
    key.add_argument("name", help="name of the user")
    key.add_argument("--label", help="what to call the key")
    _add_grant(key)
    add_command(actions, "list", _user_list, "list users and their access keys", DATA_FLAGS)
    rotate = add_command(actions, "rotate", _user_rotate, "replace a user's access keys, or one key", DATA_FLAGS)
    rotate.add_argument("name", help="name of the user, or one access key")
    revoke = add_command(actions, "revoke", _user_revoke, "take an access key out of use", DATA_FLAGS)
    revoke.add_argument("key")
    password = add_command(actions, "password", _user_password, "ask for a password and give it to a user", DATA_FLAGS)
    password.add_argument("name")
    sessions = add_command(actions, "sessions", _user_sessions, "list logins that go on, and end them", DATA_FLAGS)
    sessions.add_argument("name", nargs="?", help="name of the user; everybody's if it is left out")
    sessions.add_argument("--end", nargs="*", metavar="ID", help="end these logins; all that are listed, without an id")
    link = add_command(
        actions, "link", _user_link, "let a person at the provider, or at the proxy, sign in as a user", DATA_FLAGS
    )
    link.add_argument("name")
    link.add_argument("subject", help="the person's id at the provider (sub), or their name at the proxy")
    link.add_argument("--proxy", action="store_true", help="for the proxy of the setting proxy_user_header")
    unlink = add_command(
        actions, "unlink", _user_unlink, "let nobody at the provider or the proxy sign in as a user", DATA_FLAGS
    )
    unlink.add_argument("name")
    add_command(actions, "hash", _user_hash, "ask for a password and print its hash, for the setting users")


def _add_grant(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scopes", metavar="SCOPE,…", help="what the key allows: read, events, files, write, all")
    parser.add_argument(
        "--project", metavar="PROJECT", help="the project, by its id or name, that the key is limited to"
    )
    parser.add_argument("--days", type=float, help="days after which the key ends")


def _grant(options: argparse.Namespace) -> Grant:
    """What the flags say that a new key is to allow."""
    from apiserver.rpc.call import Grant
    from apiserver.services.access.scopes import SCOPES

    asked = None if options.scopes is None else tuple(options.scopes.split(","))
    if asked is not None and not set(asked) <= set(SCOPES):
        raise CommandError(f"--scopes: name some of {', '.join(SCOPES)}")
    if options.days is not None and not 0 < options.days <= 36500:
        raise CommandError("--days: give a number above 0, and at most 36500")
    return Grant(asked, options.project, math.inf if options.days is None else time.time() + options.days * 86400)


async def _in_project(documents: DocumentStore, settings: Settings, grant: Grant) -> Grant:
    """The grant with the id of its project, which `--project` names by its id or its name."""
    if grant.project is None:
        return grant
    for field in ("id", "name"):
        known = await documents.find_one("projects", {"company": settings.company, field: grant.project})
        if known is not None:
            return replace(grant, project=known["id"])
    raise CommandError(f"--project: there is no project '{grant.project}'")


def _user_key(settings: Settings, options: argparse.Namespace) -> None:
    from apiserver.services.access.scopes import fields_of

    async def make(documents: DocumentStore) -> tuple[Credential, Grant]:
        from apiserver.services.access.credentials import create_credential

        user = await _named(documents, settings, options.name)
        grant = await _in_project(documents, settings, asked)
        return await create_credential(documents, user, options.label, grant), grant

    asked = _grant(options)
    made, grant = with_documents(settings, make)
    allowed = fields_of(grant)
    note(settings, "user.key", name=options.name, label=options.label, access_key=made.key, **allowed)
    _print_credential(settings, made)


def _user_add(settings: Settings, options: argparse.Namespace) -> None:
    from apiserver.services.access.scopes import fields_of

    async def add(documents: DocumentStore) -> tuple[Credential, Grant]:
        from apiserver.services.access.credentials import create_user
        from apiserver.stores.documents.base import DuplicateDocument

        grant = await _in_project(documents, settings, asked)
        try:
            _, credential = await create_user(
                documents, settings.company, options.name, options.role, service=options.service, grant=grant
            )
        except DuplicateDocument:
            raise CommandError(f"there is a user named '{options.name}' already") from None
        return credential, grant

    if not options.name.strip():
        raise CommandError("a user needs a name")
    asked = _grant(options)
    made, grant = with_documents(settings, add)
    about = {"role": options.role, "service": options.service, "access_key": made.key, **fields_of(grant)}
    note(settings, "user.add", name=options.name, **about)
    _print_credential(settings, made)


def _user_list(settings: Settings, options: argparse.Namespace) -> None:
    async def listed(documents: DocumentStore) -> list[Document]:
        from apiserver.services.access.credentials import list_users

        return await list_users(documents, settings.company)

    for user in with_documents(settings, listed):
        keys = ", ".join(map(_key_said, user["credentials"])) or "no access key"
        kind = f"{user['role']}, service account" if user.get("service") else user["role"]
        sys.stdout.write(f"{shown(user['name'])} ({kind}): {keys}\n")


def _key_said(key: Document) -> str:
    """An access key, and what is special about it: `A1B2 (CI; for read, events; until 2027-01-31)`."""
    from apiserver.common.times import utc_now

    said = [shown(key["label"])] if key["label"] else []
    if key.get("scopes") is not None:
        said.append(f"for {', '.join(key['scopes'])}")
    if key.get("project"):
        said.append(f"in the project {shown(key['project'])}")
    if key.get("expires"):
        said.append(f"{'until' if key['expires'] > utc_now() else 'expired on'} {key['expires'][:10]}")
    return f"{key['key']} ({'; '.join(said)})" if said else str(key["key"])


def _user_rotate(settings: Settings, options: argparse.Namespace) -> None:
    async def rotated(documents: DocumentStore) -> Credential:
        from apiserver.services.access.credentials import UnknownUser, rotate

        try:
            return await rotate(documents, settings.company, options.name)
        except UnknownUser:
            raise CommandError(f"there is no user or access key '{options.name}'") from None

    made = with_documents(settings, rotated)
    note(settings, "user.rotate", name=options.name, access_key=made.key)
    _print_credential(settings, made)


def _user_revoke(settings: Settings, options: argparse.Namespace) -> None:
    async def revoked(documents: DocumentStore) -> int:
        from apiserver.services.access.credentials import revoke

        return await revoke(documents, settings.company, options.key)

    if not with_documents(settings, revoked):
        raise CommandError(f"there is no access key '{options.key}'; `apiserver user list` shows them")
    note(settings, "user.revoke", access_key=options.key)


def _user_password(settings: Settings, options: argparse.Namespace) -> None:
    from apiserver.common.passwords import check_name

    async def known(documents: DocumentStore) -> Document:
        user = await _named(documents, settings, options.name)
        if user.get("service"):
            raise CommandError(f"'{options.name}' is a service account, which has no password")
        return user

    async def give(documents: DocumentStore) -> None:
        from apiserver.services.access.password_login import set_password

        await set_password(documents, user, hashed)

    try:
        check_name(options.name)
    except ValueError as error:
        raise CommandError(str(error)) from None
    user = with_documents(settings, known)  # nobody types a password for a user who is not there
    hashed = _hash_of_password()
    with_documents(settings, give)
    note(settings, "user.password", name=options.name)


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
                say(_session_line(item, names.get(item["user"]) or str(item["user"])))
            return
        if unknown := set(options.end) - {item["id"] for item in sessions}:
            raise CommandError(f"there is no session {', '.join(sorted(unknown))}")
        ended = [item for item in sessions if not options.end or item["id"] in options.end]
        say(f"{await end_sessions(documents, ended)} ended")

    with_documents(settings, listed)
    if options.end is not None:
        note(settings, "user.end_sessions", name=options.name, sessions=options.end)


def _session_line(session: Document, name: str) -> str:
    times = " ".join(f"{field} {session[field][:19]}" for field in ("created", "last_used", "expires"))
    where = f"{session['address']} {session['worker']} {session['agent']}".strip()
    return f"{session['id']} {shown(name)}: {times} from {shown(where)}"


def _user_link(settings: Settings, options: argparse.Namespace) -> None:
    from apiserver.services.access.oidc.people import PROXY, link_user

    provider = PROXY if options.proxy else settings.oidc_issuer

    async def link(documents: DocumentStore) -> None:
        user = await _named(documents, settings, options.name)
        if user.get("service"):
            raise CommandError(f"'{options.name}' is a service account, as which nobody signs in")
        await link_user(documents, user, provider, options.subject)

    if not provider:
        raise CommandError("there is no provider: the setting oidc_issuer names it")
    with_documents(settings, link)
    note(settings, "user.link_provider", name=options.name, provider=provider, subject=options.subject)


def _user_unlink(settings: Settings, options: argparse.Namespace) -> None:
    async def unlink(documents: DocumentStore) -> int:
        from apiserver.services.access.oidc.people import unlink_user

        return await unlink_user(documents, settings.company, (await _named(documents, settings, options.name))["id"])

    if not with_documents(settings, unlink):
        raise CommandError(f"nobody at a provider or proxy signs in as '{options.name}'")
    note(settings, "user.unlink_provider", name=options.name)


async def _named(documents: DocumentStore, settings: Settings, name: str) -> Document:
    user = await documents.find_one("users", {"company": settings.company, "name": name})
    if user is None:
        raise CommandError(f"there is no user '{name}'")
    return user


def _user_hash(settings: Settings, options: argparse.Namespace) -> None:
    sys.stdout.write(f"{_hash_of_password()}\n")


def _hash_of_password() -> str:
    """The hash of a password: typed twice, without an echo, or else the first line of standard input."""
    import getpass

    from apiserver.common.passwords import hash_password

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


def _print_credential(settings: Settings, credential: Credential) -> None:
    from apiserver.server.client_configuration import client_configuration
    from apiserver.stores.data_folder import DataFolder

    configuration = client_configuration(settings, credential.key, credential.secret)
    sys.stdout.write(configuration.conf())
    noted = DataFolder(settings.data).noted_address()
    if noted not in ("", configuration.api_url):
        say_progress(
            f"note: the server of this data folder started at {noted}. The addresses above come from the settings of"
            " this command, which are others: correct them, or give it the server's settings, such as APISERVER_PORT"
        )

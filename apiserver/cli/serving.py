"""`serve`, `health`, `config`, and `link`, which signs the admin in."""

from __future__ import annotations

import argparse
import gc
import logging
import sys

from apiserver import advice
from apiserver.cli.auditing import note
from apiserver.cli.command import DATA_FLAGS, CommandError, Commands, add_command, say
from apiserver.cli.documents import with_documents
from apiserver.settings import Settings, masked

#: Seconds for which `health` waits; the server itself waits for two for each store.
_PATIENCE_SECONDS = 4
_ADDRESS = ("host", "port", "tls_cert", "tls_key")
_FLAGS = (
    *(*_ADDRESS, "files_port", "data", "events", "documents", "consistency", "migrate_at_start", "workers"),
    *("durability", "log_level", "log_format"),
)

log = logging.getLogger(__name__)


def add(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    add_command(commands, "serve", _serve, "run the server", _FLAGS)
    about = "ask the server that these settings start whether it is well, and fail if it is not"
    add_command(commands, "health", _health, about, _ADDRESS)
    add_command(commands, "config", _config, "print the effective settings, secrets masked", _FLAGS)
    about = "print a link that signs the admin in with a browser, once, within ten minutes"
    add_command(commands, "link", _link, about, (*_ADDRESS, *DATA_FLAGS))


def _config(settings: Settings, options: argparse.Namespace) -> None:
    for name, value in masked(settings).items():
        sys.stdout.write(f"{name} = {value}\n")
    for sentence in advice.idle(settings):
        sys.stderr.write(f"apiserver: warning: {sentence}\n")
    advice.require_usable(settings)


def _serve(settings: Settings, options: argparse.Namespace) -> None:
    gc.disable()  # a start makes no garbage, and looking for some would take a tenth of its time
    from apiserver import logs, serve

    advice.require_usable(settings)
    logs.setup(settings.log_level, settings.log_format)
    for sentence in advice.idle(settings):
        log.warning(sentence)
    try:
        serve.run(settings)
    except serve.CannotServe as error:
        raise CommandError(str(error)) from error


def _health(settings: Settings, options: argparse.Namespace) -> None:
    import ssl
    from http.client import HTTPException
    from urllib.request import urlopen

    from apiserver.client_configuration import api_address

    # It is asked on this machine, mostly by another name than its certificate has, and is told nothing.
    anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    try:
        with urlopen(f"{api_address(settings)}/health", timeout=_PATIENCE_SECONDS, context=anybody) as answer:
            say(answer.read().decode())
    except (OSError, HTTPException) as error:
        raise CommandError(f"the server is not well: {error}") from error


def _link(settings: Settings, options: argparse.Namespace) -> None:
    from apiserver.client_configuration import api_address
    from apiserver.services.access.sign_in_links import new_path

    if settings.web_url or not settings.viewer:
        raise CommandError("the server has no pages, because of the settings viewer and web_url")
    try:
        path = with_documents(settings, lambda documents: new_path(documents, settings.company))
    except LookupError as error:
        raise CommandError(f"{error}: the first start of the server makes one") from None
    note(settings, "sign_in_link.make")
    address = api_address(settings) if _names_address(options) else _noted_address(settings)
    say(f"{address or api_address(settings)}{path}")


def _names_address(options: argparse.Namespace) -> bool:
    """Whether a flag says where the server is."""
    return any(getattr(options, name) is not None for name in _ADDRESS)


def _noted_address(settings: Settings) -> str:
    """The address that the server itself has noted in the data folder; "" if it has not.

    The ports of a server may come from its own environment, which this command does not have.
    """
    from apiserver.data_folder import DataFolder

    try:
        return DataFolder(settings.data).address.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""

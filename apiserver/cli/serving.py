"""`serve`, `health`, `config`, and `link`, which signs the admin in."""

from __future__ import annotations

import argparse
import gc
import logging
import os
import sys

from apiserver.cli.auditing import note
from apiserver.cli.command import DATA_FLAGS, CommandError, Commands, add_command, say, say_progress
from apiserver.cli.documents import with_documents
from apiserver.server import advice
from apiserver.settings.settings import Settings, masked
from apiserver.settings.sources import unknown_variables

#: Seconds for which `health` and `link` wait; the server itself waits for two for each store.
_PATIENCE_SECONDS = 4
#: Bytes that are read of an answer that is not 200.
_REFUSAL = 2**16
_ADDRESS = ("host", "port", "tls_cert", "tls_key")
_FLAGS = (
    *(*_ADDRESS, "files_port", "data", "events", "documents", "consistency", "migrate_at_start", "workers"),
    *("durability", "log_level", "log_format"),
)

log = logging.getLogger(__name__)


def add(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    add_command(commands, "serve", _serve, "run the server", _FLAGS)
    about = "ask the server whether it is well, and fail if it is not"
    add_command(commands, "health", _health, about, (*_ADDRESS, "data"))
    add_command(commands, "config", _config, "print the effective settings, secrets masked", _FLAGS)
    about = "print a link that signs the admin in with a browser, once, within ten minutes"
    add_command(commands, "link", _link, about, (*_ADDRESS, *DATA_FLAGS))


def _config(settings: Settings, options: argparse.Namespace) -> None:
    for name, value in masked(settings).items():
        sys.stdout.write(f"{name} = {value}\n")
    for sentence in _warnings(settings):
        sys.stderr.write(f"apiserver: warning: {sentence}\n")
    advice.require_usable(settings)


def _warnings(settings: Settings) -> list[str]:
    """What the start tells of settings that do nothing, and of variables that are no settings."""
    return [*unknown_variables(os.environ), *advice.idle(settings)]


def _serve(settings: Settings, options: argparse.Namespace) -> None:
    gc.disable()  # a start makes little garbage, and looking for it would take a tenth of its time
    from apiserver.server import logs, serve

    advice.require_usable(settings)
    logs.setup(settings.log_level, settings.log_format)
    for sentence in _warnings(settings):
        log.warning(sentence)
    try:
        serve.run(settings, options.bounds)
    except serve.CannotServe as error:
        raise CommandError(str(error)) from error


def _health(settings: Settings, options: argparse.Namespace) -> None:
    from http.client import HTTPException
    from urllib.error import HTTPError

    from apiserver.common.server_replies import reason

    address = _server_address(settings, options)
    say_progress(f"asking {address}")
    try:
        say(_answer(f"{address}/health"))
    except HTTPError as error:  # its body says what is wrong, such as which store is down
        with error:
            why = reason(error.read(_REFUSAL))
        raise CommandError(f"the server at {address} is not well: it answers {error.code}: {why}") from error
    except (OSError, HTTPException) as error:
        raise CommandError(_no_answer(address, error, settings)) from error


def _server_address(settings: Settings, options: argparse.Namespace) -> str:
    """Where the server is: as flags or settings say, or else as the server has noted in its data folder."""
    from apiserver.server.client_configuration import api_address
    from apiserver.stores.data_folder import DataFolder

    said = api_address(settings)
    is_said = any(getattr(options, name) is not None for name in _ADDRESS) or said != api_address(Settings())
    return said if is_said else DataFolder(settings.data).noted_address() or said


def _no_answer(address: str, error: Exception, settings: Settings) -> str:
    """That no server answers at an address, why, and what to do."""
    from apiserver.common.server_replies import why_silent

    missing = "" if settings.data.exists() else f", and there is no data folder '{settings.data}': name it by --data"
    return (
        f"no server answers at {address}: {why_silent(error)}. Start it with `apiserver serve`, or say by --host and"
        f" --port where it is{missing}"
    )


def _answer(url: str) -> str:
    """What a server on this machine answers; OSError or HTTPException if it does not, or not with 200."""
    import ssl
    from urllib.request import HTTPSHandler, ProxyHandler, build_opener

    # It is asked mostly by another name than its certificate has, and is told nothing.
    anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    opener = build_opener(ProxyHandler({}), HTTPSHandler(context=anybody))
    with opener.open(url, timeout=_PATIENCE_SECONDS) as answer:
        said: str = answer.read().decode()
        return said


def _link(settings: Settings, options: argparse.Namespace) -> None:
    from http.client import HTTPException

    from apiserver.services.access.sign_in_links import new_path

    if settings.web_url or not settings.viewer:
        raise CommandError("the server has no pages, because of the settings viewer and web_url")
    address = _server_address(settings, options)
    try:
        _answer(f"{address}/livez")
    except (OSError, HTTPException) as error:
        raise CommandError(_no_answer(address, error, settings)) from error
    try:
        path = with_documents(settings, lambda documents: new_path(documents, settings.company))
    except LookupError as error:
        raise CommandError(f"{error}: the first start of the server makes one") from None
    note(settings, "sign_in_link.make")
    say(f"{address}{path}")

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
from apiserver.operating.escaping import shown
from apiserver.settings import Settings, masked

#: Seconds for which `health` and `link` wait; the server itself waits for two for each store.
_PATIENCE_SECONDS = 4
#: Bytes of an answer, and characters of what `health` prints of it if it is not 200.
_MOST_OF_ANSWER = 4000
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
    from http.client import HTTPException
    from urllib.error import HTTPError

    from apiserver.client_configuration import api_address

    try:
        say(_answer(f"{api_address(settings)}/health"))
    except HTTPError as error:  # its body says what is wrong, such as which store is down
        with error:
            said = shown(error.read(_MOST_OF_ANSWER).decode(errors="replace").strip(), longest=_MOST_OF_ANSWER)
        raise CommandError(f"the server is not well: {error}: {said}") from error
    except (OSError, HTTPException) as error:
        raise CommandError(f"the server is not well: {error}") from error


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

    from apiserver.client_configuration import api_address
    from apiserver.data_folder import DataFolder
    from apiserver.services.access.sign_in_links import new_path

    if settings.web_url or not settings.viewer:
        raise CommandError("the server has no pages, because of the settings viewer and web_url")
    noted = "" if _names_address(options) else DataFolder(settings.data).noted_address()
    address = noted or api_address(settings)
    try:
        _answer(f"{address}/livez")
    except (OSError, HTTPException) as error:
        missing = (
            "" if settings.data.exists() else f", and there is no data folder '{settings.data}': name it by --data"
        )
        raise CommandError(
            f"no server answers at {address}: {error}. Start it with `apiserver serve`, or say by --host and --port"
            f" where it is{missing}"
        ) from error
    try:
        path = with_documents(settings, lambda documents: new_path(documents, settings.company))
    except LookupError as error:
        raise CommandError(f"{error}: the first start of the server makes one") from None
    note(settings, "sign_in_link.make")
    say(f"{address}{path}")


def _names_address(options: argparse.Namespace) -> bool:
    """Whether a flag says where the server is."""
    return any(getattr(options, name) is not None for name in _ADDRESS)

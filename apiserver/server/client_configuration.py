"""The configuration of ClearML clients for this server: a `clearml.conf`, or environment variables."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field

from apiserver.settings.settings import Settings

_EVERY_ADDRESS = ("", "0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class ClientConfiguration:
    """The server's addresses, and an access key."""

    api_url: str
    files_url: str
    key: str
    secret: str = field(repr=False)
    web_url: str = ""
    """Where the SDK's links lead; if it is empty, to the server's own pages."""

    def conf(self) -> str:
        """The content of a `clearml.conf`."""
        return (
            "api {\n"
            f"    api_server: {json.dumps(self.api_url)}\n"
            f"    web_server: {json.dumps(self.web_url or self.api_url)}\n"
            f"    files_server: {json.dumps(self.files_url)}\n"
            "    credentials {\n"
            f'        "access_key" = {json.dumps(self.key)}\n'
            f'        "secret_key" = {json.dumps(self.secret)}\n'
            "    }\n"
            "}\n"
            # In a git repository the SDK runs git in a thread while it forks its reporter; a fork at the wrong moment
            # keeps git's pipe open, and Task.close then waits 300 s (seen with clearml 2.1.12).
            "sdk {\n"
            "    # detect the git repository before the run starts: while it starts, git can stall\n"
            "    development { vcs_repo_detect_async: false }\n"
            "}\n"
        )

    def exports(self) -> str:
        """Shell commands that set environment variables."""
        variables = {
            "CLEARML_API_HOST": self.api_url,
            "CLEARML_WEB_HOST": self.web_url or self.api_url,
            "CLEARML_FILES_HOST": self.files_url,
            "CLEARML_API_ACCESS_KEY": self.key,
            "CLEARML_API_SECRET_KEY": self.secret,
        }
        return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())


def client_configuration(settings: Settings, key: str, secret: str) -> ClientConfiguration:
    """The configuration of a client on this machine; if `host` is one address, also on other machines that reach it."""
    api_url = api_address(settings)
    files_url = _url(settings, settings.files_port) if settings.files_port else f"{api_url}/files"
    return ClientConfiguration(api_url, files_url, key, secret, settings.web_url)


def api_address(settings: Settings) -> str:
    """The server's address for programs on this machine."""
    return _url(settings, settings.port)


def _url(settings: Settings, port: int) -> str:
    host = settings.host
    reachable = "127.0.0.1" if host in _EVERY_ADDRESS else f"[{host}]" if ":" in host else host
    return f"{'https' if settings.tls_cert else 'http'}://{reachable}:{port}"

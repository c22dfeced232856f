"""Reads the settings, and checks them.

A setting comes from its default, the configuration file (TOML), the environment (`APISERVER_` and its name in
capitals) or the command line. A later one of these wins.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_type_hints

from apiserver.common.urls import is_private
from apiserver.settings.settings import EMBEDDED, ENVIRONMENT_PREFIX, Settings, SettingsError, setting_fields
from apiserver.settings.values import PARSERS

#: Names that a header with the name of a user may have: none that means something else to this server.
_HEADER_OF_PROXY = re.compile(
    r"(?!(accept|authorization|connection|content|cookie|host|origin|range|referer|sec|transfer|x-(auth|clearml|trains))"
    r"|x-forwarded-(for|host|proto)$)[a-z][a-z0-9-]+",
    re.IGNORECASE | re.ASCII,
)
_PATH = re.compile(r"/(?!/)[\w./?=&%~-]*", re.ASCII)


def load(
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    config: Path | None = None,
) -> Settings:
    """Settings from a file, the environment and flags; a flag that is None was not given.

    SettingsError if the file has an unknown name, or a value has the wrong type or is outside its limits.
    """
    values: dict[str, Any] = {}
    if config is not None:
        values.update(_from_file(config))
    values.update(_from_environment(environ or {}))
    for name, value in (flags or {}).items():
        if value is not None:
            values[name] = _parsed(name, value, f"--{name.replace('_', '-')}")
    settings = Settings(**values)
    _check(settings)
    return settings


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """The variables that are named like settings and are none, in a sentence each: others may set them, too."""
    sentences = []
    for variable in sorted(environ.keys() - _variables().values()):
        if variable.startswith(ENVIRONMENT_PREFIX):
            near = _nearest(variable.removeprefix(ENVIRONMENT_PREFIX).lower())
            sentences.append(f"{variable}: {_no_such_setting(near and _variables()[near])}")
    return sentences


def _variables() -> dict[str, str]:
    """By its name, the variable of each setting."""
    return {item.name: ENVIRONMENT_PREFIX + item.name.upper() for item in setting_fields()}


def _nearest(name: str) -> str:
    """The setting that is meant by a name that no setting has; "" if none is near."""
    return next(iter(get_close_matches(name, _variables(), n=1, cutoff=0.7)), "")


def _no_such_setting(meant: str) -> str:
    return f"there is no such setting; did you mean {meant}?" if meant else "there is no such setting"


def _check(settings: Settings) -> None:
    """SettingsError if two settings do not go together."""
    if bool(settings.admin_key) != bool(settings.admin_secret):
        raise SettingsError("admin_key and admin_secret: give both or neither")
    if bool(settings.tls_cert) != bool(settings.tls_key):
        raise SettingsError("tls_cert and tls_key: give both or neither")
    for name in ("data", "backup_to", "backup_work", "retention_archive", "tls_cert", "tls_key"):
        if str(getattr(settings, name)).startswith("~"):
            raise SettingsError(f"{name}: only a shell knows what ~ is: give the whole path of the home folder")
    if settings.backup_to and (settings.events == EMBEDDED) != (settings.documents == EMBEDDED):
        raise SettingsError(
            "backup_to: either events or documents are in the data folder, and the others in an engine, which no backup"
            " shows at one moment; back up both by their own means"
        )
    if settings.port == settings.files_port:
        raise SettingsError("port and files_port: give two different ports, or files_port 0 for files below the API")
    if bool(settings.oidc_issuer) != bool(settings.oidc_client_id):
        raise SettingsError("oidc_issuer and oidc_client_id: give both or neither")
    if settings.oidc_issuer and not is_private(settings.oidc_issuer):
        raise SettingsError("oidc_issuer: give an address of https; http is for a provider on this machine only")
    if settings.oidc_issuer and "openid" not in settings.oidc_scopes.split():
        raise SettingsError("oidc_scopes: openid must be among them")
    if settings.proxy_user_header and not settings.trusted_proxies:
        raise SettingsError("proxy_user_header: trusted_proxies must say which proxies may send it")
    if settings.proxy_user_header and not _HEADER_OF_PROXY.fullmatch(settings.proxy_user_header):
        raise SettingsError("proxy_user_header: give the name of a header that means nothing else")
    if settings.proxy_sign_out and not (
        _PATH.fullmatch(settings.proxy_sign_out) or _is_web_address(settings.proxy_sign_out)
    ):
        raise SettingsError("proxy_sign_out: give a path such as /oauth2/sign_out, or an address")


def _from_file(config: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(config.read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"{config}: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{config}: {error}") from error
    return {name: _parsed(name, value, f"{config}: {name}") for name, value in content.items()}


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    named = {name: variable for name, variable in _variables().items() if variable in environ}
    return {name: _parsed(name, environ[variable], variable) for name, variable in named.items()}


def _parsed(name: str, value: object, source: str) -> Any:
    """`value` in the setting's own type; `source` tells in errors where it was given."""
    item = next((item for item in setting_fields() if item.name == name), None)
    if item is None:
        raise SettingsError(f"{source}: {_no_such_setting(_nearest(name))}")
    try:
        parsed = PARSERS[get_type_hints(Settings)[name]](value)
    except ValueError as error:
        raise SettingsError(f"{source}: {error}") from None
    problem = _outside(item.metadata, parsed)
    if problem:
        raise SettingsError(f"{source}: {problem}")
    return parsed


def _outside(limits: Mapping[str, Any], value: Any) -> str | None:
    if "choices" in limits and value not in limits["choices"]:
        return f"{value!r} is not one of {', '.join(limits['choices'])}"
    if "min" in limits and value < limits["min"]:
        return f"{value} is less than {limits['min']}"
    if "max" in limits and value > limits["max"]:
        return f"{value} is more than {limits['max']}"
    if limits.get("web") and value and not _is_web_address(value):
        return f"{value!r} is not an address such as http://ui.example.org:8080"
    if limits.get("filled") and not value.strip():
        return "it is empty"
    if value and len(str(value)) < limits.get("min_length", 0):
        return f"shorter than {limits['min_length']} characters"
    return None


def _is_web_address(text: str) -> bool:
    return re.fullmatch(r"https?://[^\s/?#@\\\"<>]+(/[\w./~-]*)?", text, re.ASCII) is not None

"""The certificate and the key with which the server speaks TLS. They are read again when their files change."""

from __future__ import annotations

import logging
import math
import re
import ssl
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from apiserver.common.extras import installed_by

log = logging.getLogger(__name__)

#: Each of these gives a new secret to each connection, and notices changed data.
_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


class CertificateError(Exception):
    """The certificate or its key cannot be used; the message says why."""


class Certificate:
    """A certificate with its chain in the file `certificate`, and its key in the file `key`, both as PEM."""

    def __init__(self, certificate: Path, key: Path, clock: Callable[[], float] = time.time) -> None:
        """Raises CertificateError. `clock` says how late it is."""
        self._clock = clock
        self._files = certificate, key
        self._seen = self._look()
        self.context, self.ends = _load(certificate, key)
        """What new connections use, and when the certificate ends. Connections that are open keep what they have."""
        self.outdated = False
        """Whether the files have changed into something that cannot be used."""
        self._tell("the server speaks TLS")

    @property
    def end_seconds(self) -> float:
        """When the certificate ends, in seconds since 1970; NaN if that cannot be read."""
        return math.nan if self.ends is None else self.ends.timestamp()

    async def refresh(self) -> None:
        """Read the files again if they have changed. If they cannot be used, go on with what was read before."""
        seen = self._look()
        if seen == self._seen:
            return
        self._seen = seen
        try:
            self.context, self.ends = _load(*self._files)
        except CertificateError as error:
            self.outdated = True
            log.error("the certificate was not read again, and the one before stays in use: %s", error)
        else:
            self.outdated = False
            self._tell("the certificate was read again")

    def _look(self) -> list[tuple[int, ...] | None]:
        return [_state(path) for path in self._files]

    def _tell(self, what: str) -> None:
        if self.ends is None:
            log.warning("%s, and does not know when the certificate ends: %s", what, installed_by("oidc"))
            return
        log.info(what, extra={"certificate_ends": self.ends.isoformat()})
        if self.end_seconds <= self._clock():
            log.warning("the certificate has expired: clients that check it do not connect")


def _state(path: Path) -> tuple[int, ...] | None:
    """What changes when a file is written or replaced; None if there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev


def _load(certificate: Path, key: Path) -> tuple[ssl.SSLContext, datetime | None]:
    """A context with both, and when the certificate ends, if that can be read. Raises CertificateError."""
    text = _read("tls_cert", certificate)
    _read("tls_key", key)
    certificates = _PEM.search(text)
    if certificates is None:
        raise CertificateError(f"tls_cert: there is no certificate in {certificate}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION  # a client could have the server compute again and again
    context.set_ciphers(_CIPHERS)
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key, password=_refuse_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise CertificateError(f"tls_key: {key} is not the key of the certificate in {certificate}") from None
        files = f"{certificate} and {key} are not a certificate and its key in PEM"
        raise CertificateError(f"tls_cert and tls_key: {files} ({error.reason or error})") from None
    except (OSError, ValueError) as error:
        raise CertificateError(f"tls_cert: {certificate}: {error}") from None
    return context, _end_of(certificates[0])


def _read(setting: str, path: Path) -> str:
    try:
        return path.read_text("latin-1")
    except OSError as error:
        raise CertificateError(f"{setting}: cannot read {path}: {error.strerror}") from None


def _refuse_password() -> NoReturn:
    raise CertificateError("tls_key: the key is encrypted; the server needs it without a password")


def _end_of(pem: str) -> datetime | None:
    """When a certificate ends; None if `cryptography` is not installed, or does not read what OpenSSL has taken."""
    try:
        from cryptography import x509
    except ModuleNotFoundError:
        return None
    try:
        return x509.load_pem_x509_certificate(pem.encode("latin-1")).not_valid_after_utc
    except (ValueError, x509.InvalidVersion):
        return None

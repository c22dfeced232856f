"""The certificate: what is wrong with it is said, and a new one is taken without a stop."""

from __future__ import annotations

import logging
import math
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import pytest
from cryptography import x509

from apiserver.http.certificate import Certificate, CertificateError
from tests.certificates import Pair, new_pair

pytestmark = pytest.mark.anyio


def read(pair: Pair) -> Certificate:
    return Certificate(pair.certificate, pair.key)


@pytest.mark.test
@pytest.mark.parametrize("kind", ["ec", "rsa", "ed25519"])
@pytest.mark.parametrize("days", [30, 36500])  # a year has two digits up to 2049
def test_its_end_is_known(tmp_path: Path, kind: str, days: int) -> None:
    pair = new_pair(tmp_path, kind=kind, days=days)
    command = ["openssl", "x509", "-in", str(pair.certificate), "-noout", "-enddate"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    expected = datetime.strptime(told, "notAfter=%b %d %H:%M:%S %Y GMT").replace(tzinfo=UTC)
    one = read(pair)
    assert (one.ends, one.end_seconds) == (expected, expected.timestamp())


@pytest.mark.test
def test_without_the_package_that_reads_it_the_server_speaks_tls_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    alone = read(new_pair(tmp_path))
    assert alone.ends is None
    assert math.isnan(alone.end_seconds)
    assert "does not know when the certificate ends" in caplog.text
    assert "make oidc" in caplog.text


@pytest.mark.test
def test_one_that_only_openssl_reads_is_used_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pem: bytes) -> NoReturn:
        raise x509.InvalidVersion("4 is not a valid X509 version", 4)

    monkeypatch.setattr(x509, "load_pem_x509_certificate", refuse)
    assert read(new_pair(tmp_path)).ends is None


@pytest.mark.test
def test_the_chain_is_read_and_the_first_one_counts(tmp_path: Path) -> None:
    first, second = new_pair(tmp_path, "first", days=10), new_pair(tmp_path, "second", days=20)
    alone = read(first).end_seconds
    first.certificate.write_text(f"a chain\n{first.certificate.read_text()}{second.certificate.read_text()}")
    assert read(first).end_seconds == alone


def _broken(path: Path) -> None:
    path.write_text(path.read_text()[:200])


def _encrypted(path: Path) -> None:
    command = ["openssl", "pkcs8", "-topk8", "-in", str(path), "-out", f"{path}.new", "-passout", "pass:secret"]
    subprocess.run(command, check=True, capture_output=True)
    os.replace(f"{path}.new", path)


def _nonsense(path: Path) -> None:
    path.write_text("-----BEGIN CERTIFICATE-----\nMAMC\n-----END CERTIFICATE-----\n")


@pytest.mark.test
@pytest.mark.parametrize(
    ("file", "spoil", "message"),
    [
        ("a.pem", Path.unlink, r"tls_cert: cannot read .*a\.pem: No such file"),
        ("a.key", Path.unlink, r"tls_key: cannot read .*a\.key: No such file"),
        ("a.pem", lambda path: path.write_text(""), r"tls_cert: there is no certificate in .*a\.pem"),
        ("a.pem", _broken, r"tls_cert: there is no certificate in .*a\.pem"),
        ("a.pem", _nonsense, r"tls_cert and tls_key: .*a\.pem"),
        ("a.key", _broken, r"are not a certificate and its key in PEM"),
        ("a.key", _encrypted, r"tls_key: the key is encrypted"),
        ("a.key", lambda path: os.replace(path.with_name("b.key"), path), r"a\.key is not the key of the cert"),
    ],
)
async def test_what_is_wrong_is_said_and_stops_only_a_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, file: str, spoil: Callable[[Path], object], message: str
) -> None:
    pair, _ = new_pair(tmp_path), new_pair(tmp_path, "b")
    read_pair = read(pair)
    context, ends = read_pair.context, read_pair.ends
    spoil(tmp_path / file)
    with pytest.raises(CertificateError, match=message):
        read(pair)
    await read_pair.refresh()
    assert (read_pair.context, read_pair.ends, read_pair.outdated) == (context, ends, True)
    [told] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "the one before stays in use" in told.getMessage()
    await read_pair.refresh()
    assert [record for record in caplog.records if record.levelno == logging.ERROR] == [told]  # it is said once


@pytest.mark.test
async def test_a_new_pair_is_taken_when_both_files_are_there(tmp_path: Path) -> None:
    pair, new = new_pair(tmp_path, days=10), new_pair(tmp_path, "b", days=20)
    read_pair = read(pair)
    context, ends = read_pair.context, read_pair.end_seconds
    await read_pair.refresh()
    assert read_pair.context is context
    os.replace(new.certificate, pair.certificate)
    await read_pair.refresh()
    assert read_pair.outdated
    os.replace(new.key, pair.key)
    await read_pair.refresh()
    assert not read_pair.outdated
    assert read_pair.context is not context
    assert read_pair.end_seconds > ends


@pytest.mark.test
def test_one_that_has_expired_is_used_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pair = new_pair(tmp_path)
    read(pair)
    assert "expired" not in caplog.text
    later = datetime(2200, 1, 1, tzinfo=UTC).timestamp()
    Certificate(pair.certificate, pair.key, lambda: later)
    assert "the certificate has expired" in caplog.text

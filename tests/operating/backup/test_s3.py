"""Backups to a server of S3's protocol, which is started from `.venv-s3`."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from apiserver.operating.backup import manifest
from apiserver.operating.backup.checking import check
from apiserver.operating.backup.destinations import storage
from apiserver.operating.backup.forgetting import forget
from apiserver.operating.backup.making import make
from apiserver.operating.backup.rereading import read_on
from apiserver.operating.backup.restoring import restore, verify
from apiserver.operating.backup.storage import BackupError, Storage
from apiserver.settings.settings import Settings
from apiserver.stores.data_folder import DataFolder
from tests.harness import free_ports, wait_until
from tests.operating.backup.conftest import quiet

SERVER = Path(__file__).parents[3] / ".venv-s3" / "bin" / "moto_server"

pytestmark = pytest.mark.skipif(not SERVER.exists(), reason="there is no .venv-s3 (make check)")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    (port,) = free_ports(1)
    process = subprocess.Popen([str(SERVER), "-H", "127.0.0.1", "-p", str(port)], stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: _answers(f"http://127.0.0.1:{port}"))
        assert httpx.put(f"http://127.0.0.1:{port}/bucket").status_code == 200
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _answers(address: str) -> bool:
    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(address).status_code == 200
    return False


@pytest.fixture
def bucket(address: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Storage:
    """An empty prefix of the bucket."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    return storage(f"s3://bucket/of/{request.node.name}")


def test_a_bucket_does_what_a_folder_does(data: Path, bucket: Storage, tmp_path: Path) -> None:
    settings = Settings(data=data)
    first = make(settings, bucket, quiet())
    assert first.manifest.copied > 2**20
    second = make(settings, bucket, quiet())
    assert second.manifest.copied == 0
    assert manifest.names(bucket) == sorted([first.name, second.name])
    assert check(bucket, quiet()) == []
    assert forget(bucket, 1) == (1, 0)
    chosen = manifest.choose(bucket, None).manifest
    restore(bucket, chosen, tmp_path / "new", quiet())
    assert verify(settings, chosen, tmp_path / "new", quiet()) == []


def test_what_is_damaged_or_missing_in_a_bucket_is_found(data: Path, bucket: Storage, tmp_path: Path) -> None:
    make(Settings(data=data), bucket, quiet())
    noted, hours = DataFolder(data), 1e-6
    assert read_on(bucket, noted, hours, quiet()).wrong == []
    name = next(iter(bucket.sizes("pieces")))
    whole = bucket.read(name)
    bucket.write(name, whole[:-1] + bytes([whole[-1] ^ 1]))
    assert any("is damaged" in line for line in map(str, check(bucket, quiet())))
    assert "is damaged" in read_on(bucket, noted, hours, quiet()).wrong[0]
    bucket.delete(name)
    assert "is missing" in read_on(bucket, noted, hours, quiet()).wrong[0]
    bucket.delete(name)
    assert any("is missing" in line for line in map(str, check(bucket, quiet())))
    with pytest.raises(BackupError, match=r"/pieces/.* cannot be read: there is none"):
        bucket.read(name)


def test_a_bucket_that_does_not_exist_is_said(data: Path, bucket: Storage) -> None:
    with pytest.raises(BackupError, match=r"s3://other cannot be listed: .*NoSuchBucket") as caught:
        make(Settings(data=data), storage("s3://other"), quiet())
    assert caught.value.told == "the destination cannot be listed"


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_REGION"])
def test_a_variable_that_makes_the_library_panic_is_told_as_any_failure(
    bucket: Storage, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "a\nb")
    with pytest.raises(BackupError, match=r"cannot be listed: .* such as AWS_ACCESS_KEY_ID.*InvalidHeaderValue"):
        storage(bucket.address).sizes("manifests")


def test_a_failure_is_told_without_what_only_debugging_needs(bucket: Storage) -> None:
    with pytest.raises(BackupError) as caught:
        storage("s3://other/prefix").sizes("manifests")
    assert "NoSuchBucket" in str(caught.value)
    assert "Debug source" not in str(caught.value)


@pytest.mark.parametrize("endpoint", ["s3.example.org", "127.0.0.1:9000", "http://", "https://a b", "ftp://a"])
def test_an_endpoint_that_is_no_web_address_is_refused(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    with pytest.raises(BackupError, match=f"AWS_ENDPOINT_URL: '{endpoint}' is not like https://s3.example.org"):
        storage("s3://bucket/prefix")


@pytest.mark.parametrize("said", ["s3:/bucket/prefix", "gs://bucket", "file:/tmp/backups"])
def test_what_is_nearly_an_address_makes_no_folder(said: str) -> None:
    with pytest.raises(BackupError, match=f"{said} is neither a folder nor s3://bucket/prefix"):
        storage(said)


@pytest.mark.parametrize("said", ["s3://", "s3:///prefix"])
def test_an_address_without_a_bucket_is_refused(said: str) -> None:
    with pytest.raises(BackupError, match="is not like s3://bucket/prefix"):
        storage(said)

"""No secret lies readable in what a server keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from apiserver.common import passwords
from apiserver.settings.values import FixedUser
from tests.harness import ADMIN_SECRET, running_api

pytestmark = pytest.mark.anyio

PASSWORD = "the password of alice"


@pytest.mark.test
async def test_no_secret_is_kept_readable(tmp_path: Path) -> None:
    users = (FixedUser("alice", passwords.hash_password(PASSWORD)),)
    async with running_api(tmp_path / "data", users=users) as api:
        key = (await api.call("auth.create_credentials"))["credentials"]
        token = (await api.call("auth.login", auth=("alice", PASSWORD)))["token"]
    kept = [path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert any(key["access_key"].encode() in content for content in kept)
    for secret in (ADMIN_SECRET, PASSWORD, key["secret_key"], token):
        assert not any(secret.encode() in content for content in kept), secret

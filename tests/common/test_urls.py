"""Which texts are addresses of stored files, and which are scripts."""

from __future__ import annotations

import pytest

from apiserver.common.urls import is_name_of_file, is_of_file, is_script


@pytest.mark.parametrize(
    "url",
    [
        # As ClearML's SDK makes them of its upload destinations.
        "http://host:8081/proj/t.1/metrics/m%20m/v/m_v_00000001.png",
        "https://files.example.com/a.png?token=1#x",
        "HTTPS://Files.Example.com/a.png",
        "s3://bucket/proj/t.1/m m/v0x23é/m_v.png",
        "S3://host:9000/bucket/a.png",
        "gs://bucket/a.png",
        "azure://account.blob.core.windows.net/container/a.png",
        "file:///mnt/share/proj/t.1/a b.png",
        "file://C:\\data\\x/proj/a.png",
        "file://server/share/a.png",
        "/files/proj/t.1/a.png",
        "/files/a..b/.hidden/c%2Fd.png?x=1",
    ],
)
def test_files_have_addresses(url: str) -> None:
    assert is_of_file(url)
    assert not is_script(url)


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        " JaVaScript:alert(1)",
        "java\tscript:alert(1)",
        "\x01javascript:alert(1)",
        "vbscript:x",
        "data:text/html,<script>alert(1)</script>",
        "DATA:image/svg+xml;base64,AAAA",
    ],
)
def test_scripts_are_none(url: str) -> None:
    assert not is_of_file(url)
    assert not is_name_of_file(url)
    assert is_script(url)


@pytest.mark.parametrize(
    "url",
    [
        "/api/v2.34/auth.edit_user?user=EVE&role=admin",
        "/v2.34/auth.edit_user?user=EVE&role=admin",
        "auth.edit_user?user=EVE&role=admin",
        "?user=EVE",
        ".",
        "..",
        " a.png",
        "a%2fb.png",
        "a.png#b",
        "../api/v2.34/auth.edit_user",
        "//evil.example.com/a.png",
        "\\\\server\\share\\a.png",
        "/\\evil.example.com/a.png",
        "http:/api/v2.34/auth.edit_user",
        "http:auth.edit_user",
        "http:///api/v2.34/auth.edit_user",
        "https:\\\\host\\a.png",
        "http://\\api/v2.34/auth.edit_user",
        "/files/../api/v2.34/auth.edit_user",
        "/files/x/..?a",
        "/files/..#a",
        "/files/%2e%2E/api/v2.34/auth.edit_user",
        "/files/..%2fapi/v2.34/auth.edit_user",
        "/files/..\\api/v2.34/auth.edit_user",
        "/files/%5c..%5capi",
        "/filesystem/a.png",
        "/mnt/share/a.png",
        "C:\\data\\a.png",
        "ftp://host/a.png",
        "blob:http://host/1",
        "file:a.png",
        " http://host/a.png",
        "http://host/a\n.png",
        "http://host/a\x00.png",
        "htt\tp://host/a.png",
        "s3://",
        "\u00a0http://host/a.png",
    ],
)
def test_what_else_a_browser_may_follow_is_no_address_of_a_file(url: str) -> None:
    assert not is_of_file(url)
    assert not is_name_of_file(url)
    assert not is_script(url)


@pytest.mark.parametrize("name", ["a.png", "url_1.txt", "loss_train 1", "größe..1"])
def test_names_of_files_are_names_and_nothing_more(name: str) -> None:
    assert is_name_of_file(name)
    assert not is_of_file(name)
    assert not is_script(name)

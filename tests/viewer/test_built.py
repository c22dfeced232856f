"""What was built of the pages is read and compressed once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from apiserver.viewer import built


def test_a_file_is_compressed_once_for_all_who_ask_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "index.html").write_text("<p>" * 1000)
    pages, together, compressed = built.read(tmp_path), Barrier(4), list[Path]()
    content = built._content

    def slowly(path: Path, encoding: str | None) -> built.Content:
        compressed.append(path)
        time.sleep(0.05)  # the others ask meanwhile
        return content(path, encoding)

    monkeypatch.setattr(built, "_content", slowly)

    def ask(_: int) -> built.Content | None:
        together.wait(10)
        return pages.content("/index.html", "zstd")

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(ask, range(4)))
    assert compressed == [tmp_path / "index.html"]
    assert found[0] is not None
    assert all(one is found[0] for one in found)

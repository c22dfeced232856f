"""What was built of the pages is read and compressed once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Lock

import pytest

from apiserver.pages import built
from tests.harness import PATIENCE


class CountingLock:
    """A lock that says when so many have asked for it."""

    def __init__(self, count: int) -> None:
        self._lock, self._left, self.all_ask = Lock(), [None] * count, Event()

    def __enter__(self) -> None:
        self._left.pop()
        if not self._left:
            self.all_ask.set()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_a_file_is_compressed_once_for_all_who_ask_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "index.html").write_text("<p>" * 1000)
    pages, compressed = built.read(tmp_path), list[Path]()
    content, lock = built.content_of, CountingLock(4)
    monkeypatch.setattr(pages, "_reading", lock)

    def slowly(path: Path, encoding: str | None) -> built.Content:
        compressed.append(path)
        assert lock.all_ask.wait(PATIENCE)
        return content(path, encoding)

    monkeypatch.setattr(built, "content_of", slowly)

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: pages.content("/index.html", "zstd"), range(4)))
    assert compressed == [tmp_path / "index.html"]
    assert found[0] is not None
    assert all(one is found[0] for one in found)

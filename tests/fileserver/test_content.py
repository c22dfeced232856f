"""Content types and dispositions: what a browser shows, and what it only saves."""

from __future__ import annotations

import pytest

from apiserver.fileserver.content import content_disposition, content_type


@pytest.mark.parametrize(
    ("name", "kind", "shown"),
    [
        ("/a/loss.png", "image/png", True),
        ("/a/LOSS.JPEG", "image/jpeg", True),
        ("/a/x.webp", "image/webp", True),
        ("/a/clip.mp4", "video/mp4", True),
        ("/a/sound.wav", "audio/wav", True),
        ("/a/notes.txt", "text/plain; charset=utf-8", True),
        ("/a/page.html", "text/html; charset=utf-8", False),
        ("/a/drawing.svg", "image/svg+xml", False),
        ("/a/feed.xml", "text/xml; charset=utf-8", False),
        ("/a/table.csv", "text/csv; charset=utf-8", False),
        ("/a/table.csv.gz", "application/gzip", False),
        ("/a/drawing.svgz", "application/gzip", False),
        ("/a/report.pdf", "application/pdf", False),
        ("/a/data.json", "application/json", False),
        ("/a/model.pkl", "application/octet-stream", False),
        ("/a/no-ending", "application/octet-stream", False),
        ("/a.html/x", "application/octet-stream", False),
    ],
)
def test_by_the_ending_of_the_name(name: str, kind: str, shown: bool) -> None:
    assert content_type(name) == kind
    assert content_disposition(name, kind).startswith("inline" if shown else "attachment")


def test_the_saved_file_is_named_as_the_stored_one() -> None:
    disposition = content_disposition('/a/épée "1"\r\n.bin', "application/octet-stream")
    assert disposition == "attachment; filename*=UTF-8''%C3%A9p%C3%A9e%20%221%22%0D%0A.bin"

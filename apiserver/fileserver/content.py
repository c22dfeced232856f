"""Tells browsers the type of a stored file, by the ending of its name, and keeps them from running scripts in it."""

from __future__ import annotations

from mimetypes import MimeTypes
from urllib.parse import quote

#: Headers of every file: a document is sandboxed, loads nothing from elsewhere, and browsers do not guess its type.
FILE_HEADERS = [
    (
        b"content-security-policy",
        b"sandbox; default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; media-src 'self'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]

_UNKNOWN = "application/octet-stream"
_INLINE_KINDS = ("image", "video", "audio")
_TYPES = MimeTypes()  # without the system's tables, so that every machine gives the same answer
for _ending, _type in {
    ".webp": "image/webp",
    ".avif": "image/avif",
    ".jsonl": "application/json-lines",
    ".ndjson": "application/x-ndjson",
    ".arrow": "application/vnd.apache.arrow.stream",
    ".parquet": "application/vnd.apache.parquet",
    ".md": "text/markdown",
    ".log": "text/plain",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".npz": "application/zip",
    ".webm": "video/webm",
    ".mp4": "video/mp4",
    ".ogg": "audio/ogg",
    ".wav": "audio/wav",
    ".flac": "audio/flac",
    ".m4a": "audio/mp4",
}.items():
    _TYPES.add_type(_type, _ending)

_COMPRESSED = {"gzip": "application/gzip", "bzip2": "application/x-bzip2", "xz": "application/x-xz"}


def content_type(name: str) -> str:
    """The Content-Type of a file with that name; for a compressed file, that of its compression."""
    kind, encoding = _TYPES.guess_type("file/" + name.rpartition("/")[2])
    if encoding is not None:
        return _COMPRESSED.get(encoding, _UNKNOWN)
    if kind is not None and kind.startswith("text/"):
        return f"{kind}; charset=utf-8"
    return kind or _UNKNOWN


def content_disposition(name: str, kind: str) -> str:
    """`inline` for images, audio, video and plain text, which browsers only show; `attachment` for all else."""
    media_type = kind.partition(";")[0]
    shown = media_type == "text/plain" or (media_type.split("/")[0] in _INLINE_KINDS and media_type != "image/svg+xml")
    file_name = quote(name.rpartition("/")[2], errors="surrogatepass")
    return f"{'inline' if shown else 'attachment'}; filename*=UTF-8''{file_name}"

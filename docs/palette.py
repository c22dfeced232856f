"""Pictures of pages with at most 256 colours: a third of the bytes, and the eye sees no difference."""

from __future__ import annotations

import struct
import zlib
from base64 import b64decode, b64encode
from typing import Any

import numpy as np
from playwright.sync_api import Page

_COLOURS = 256
#: So many of these are the most frequent ones. The others are those that are missed most, as in a scale of colours.
_FREQUENT = 192
#: Has the browser decode a PNG: answers its width and its pixels (red, green, blue, alpha) as base64.
_DECODE = """
async content => {
  const picture = await createImageBitmap(await (await fetch(`data:image/png;base64,${content}`)).blob());
  const context = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
  context.drawImage(picture, 0, 0);
  const pixels = context.getImageData(0, 0, picture.width, picture.height).data;
  return [picture.width, pixels.toBase64 ? pixels.toBase64() : btoa(
    Array.from({ length: Math.ceil(pixels.length / 32768) },
      (_, n) => String.fromCharCode(...pixels.subarray(n * 32768, (n + 1) * 32768))).join(""))];
}
"""


def with_palette(content: bytes, empty: Page) -> bytes:
    """A PNG with a palette, of a PNG. `empty`: a page of a browser that shows nothing."""
    width, pixels = empty.evaluate(_DECODE, b64encode(content).decode())
    colours = np.frombuffer(b64decode(pixels), np.uint8).reshape(-1, 4)[:, :3]
    palette, places = _reduced(colours)
    rows = np.zeros((len(places) // width, width + 1), np.uint8)  # each row begins with 0: it has no filter
    rows[:, 1:] = places.reshape(-1, width)
    head = struct.pack(">IIBBBBB", width, len(rows), 8, 3, 0, 0, 0)
    parts = [(b"IHDR", head), (b"PLTE", palette.tobytes()), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, part) for kind, part in parts)


def _reduced(colours: np.ndarray[Any, np.dtype[np.uint8]]) -> tuple[Any, Any]:
    """The palette, and for each pixel the place of the nearest colour in it."""
    packed = colours.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
    found, inverse, counts = np.unique(packed, return_inverse=True, return_counts=True)
    all_colours = np.stack([found >> 16, found >> 8 & 255, found & 255], axis=1).astype(np.int32)
    nearest, distances = np.zeros(len(found), np.uint8), np.full(len(found), np.iinfo(np.int32).max)
    chosen: list[int] = []
    for place in range(min(_COLOURS, len(found))):
        missed = counts if place < _FREQUENT else counts * distances
        chosen.append(int(np.argmax(np.where(distances > 0, missed, -1))))
        from_this = ((all_colours - all_colours[chosen[-1]]) ** 2).sum(axis=1)
        nearest[from_this < distances] = place
        distances = np.minimum(distances, from_this)
    return all_colours[chosen].astype(np.uint8), nearest[inverse.reshape(-1)]


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

"""Where messages end: as the parser sees it, however their bytes are cut."""

from __future__ import annotations

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.http.framing import ChunkedBody, Misframed, SizedBody, head_end, may_be_head

HEAD = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"


def take_all(body: ChunkedBody | SizedBody, pieces: list[bytes]) -> int:
    """How many bytes of the pieces a body is, each offered until it is taken or the body ends."""
    taken = 0
    for piece in pieces:
        at = 0
        while at < len(piece) and not body.complete:
            at = body.take(piece, at)
        taken += at
    return taken


def test_a_head_ends_with_an_empty_line() -> None:
    assert head_end(b"GET / HTTP/1.1\r\n\r\nGET", 0) == 18
    assert head_end(b"GET / HTTP/1.1\r\n\r\nGET", 5) == 18
    assert head_end(b"GET / HTTP/1.1\r\n\r", 0) == -1


def test_what_begins_as_no_request_does_is_known_at_once() -> None:
    for text in (b"", b"G", b"GET ", b"M-SEARCH * HTTP", b"DELETE /x y"):
        assert may_be_head(b"xx" + text, 2)
    for text in (b"get /", b"\x16\x03\x01", b"\0", b"GET\t/", b"GET:", b"X" * 30, b" GET /"):
        assert not may_be_head(text, 0)


def test_a_sized_body_ends_after_its_bytes() -> None:
    body = SizedBody(7)
    assert (body.take(b"xxabc", 2), body.complete) == (5, False)
    assert (body.take(b"defgGET", 0), body.complete) == (4, True)


@pytest.mark.parametrize(
    "text",
    [
        b"0\r\n\r\n",
        b"5\r\nhello\r\n0\r\n\r\n",
        b"005;name=value\r\nhello\r\nA \r\n0123456789\r\n0\r\n\r\n",
        b"1\r\n\n\r\n2\r\n\r\n\r\n0\r\nTrailer: 1\r\nOther: 2\r\n\r\n",
    ],
)
def test_a_body_in_chunks_ends_where_it_says(text: bytes) -> None:
    for size in (1, 2, 3, len(text) + 3):
        sent = text + b"GET"
        body = ChunkedBody()
        assert take_all(body, [sent[at : at + size] for at in range(0, len(sent), size)]) == len(text)
        assert body.complete


class Seen:
    """Whether the parser saw the end of the body, and what it holds."""

    def __init__(self) -> None:
        self.whole = False
        self.body = b""

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.whole = True


@pytest.mark.test
@given(
    st.lists(st.tuples(st.binary(min_size=1, max_size=40), st.sampled_from([b"", b";a", b"; a=b", b" "])), max_size=5),
    st.sampled_from([b"", b"X: y\r\n"]),
    st.integers(1, 60),
)
def test_the_parser_sees_the_same_end(chunks: list[tuple[bytes, bytes]], trailers: bytes, cut: int) -> None:
    text = b"".join(b"%x%b\r\n%b\r\n" % (len(data), extension, data) for data, extension in chunks)
    text += b"0\r\n" + trailers + b"\r\n"
    body, seen = ChunkedBody(), Seen()
    parser = httptools.HttpRequestParser(seen)
    parser.feed_data(HEAD)
    for start in range(0, len(text), cut):
        piece = text[start : start + cut]
        at = 0
        while at < len(piece):
            end = body.take(piece, at)
            try:
                parser.feed_data(piece[at:end])
            except httptools.HttpParserError:
                return  # it refuses some extensions
            at = end
        assert seen.whole is body.complete
    assert seen.body == b"".join(data for data, _ in chunks)


def test_tiny_chunks_are_taken_a_few_at_a_time() -> None:
    text = b"1\r\nx\r\n" * 1000 + b"0\r\n\r\n"
    assert 0 < ChunkedBody().take(text, 0) < len(text) / 4


@pytest.mark.parametrize(
    "text",
    [
        b"hello\r\n",
        b"\r\n",
        b"-5\r\nhello\r\n",
        b"0x5\r\nhello\r\n",
        b"5\nhello\n",
        b"1" * 16 + b"\r\n",
        b"5;" + b"x" * 255 + b"\r\nhello\r\n",
        b"0" * 300,
        b"0\r\n" + b"Name: value\r\n" * 700,
        b"0\r\n" + b"x" * 9000,
    ],
)
def test_what_is_no_chunk_or_has_no_end_is_refused(text: bytes) -> None:
    for size in (1, 7, len(text)):
        with pytest.raises(Misframed):
            take_all(ChunkedBody(), [text[at : at + size] for at in range(0, len(text), size)])

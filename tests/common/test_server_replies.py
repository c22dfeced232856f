"""What people are told of a refusal: the server's sentence, and no JSON."""

from __future__ import annotations

from urllib.error import URLError

import pytest
import urllib3

from apiserver.common.server_replies import reason, why_silent


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b'{"meta": {"result_code": 401, "result_msg": "Unknown key"}, "data": {}}', "Unknown key"),
        (b'{"error": {"code": 406, "message": "No Parquet here"}}', "No Parquet here"),
        (b'{"error": {"code": 400, "message": "a\\nb\\u001b[2K"}}', "a\\nb\\x1b[2K"),
        (
            b'{"status": "unavailable", "stores": {"documents": "down", "events": "down", "files": "ok"}}',
            "the store of documents and of events is down",
        ),
        (b'{"error_code": "NOT_FOUND", "message": "No run"}', "No run"),
        (b"<html>\nBad Gateway</html>\n", "<html>\\nBad Gateway</html>"),
        (b"x" * 1000, "x" * 299 + "…"),
        (b'{"error": {"message": "%s"}}' % (b"x" * 4100), "x" * 4100),
        (b'{"error": {"message": "%s"}}' % (b"x" * 60_000), "x" * 4999 + "…"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"[" * 100_000, "[" * 299 + "…"),
        (b'{"error": "no", "meta": 5}', '{"error": "no", "meta": 5}'),
        (b"", ""),
    ],
)
def test_a_refusal_is_said_in_the_words_of_the_server(body: bytes, sentence: str) -> None:
    assert reason(body) == sentence


def test_of_an_answer_that_does_not_come_the_cause_is_said() -> None:
    with pytest.raises(urllib3.exceptions.HTTPError) as caught:
        urllib3.request("GET", "http://127.0.0.1:1", retries=urllib3.Retry(1))
    assert why_silent(caught.value) == "Connection refused"
    assert why_silent(URLError(ConnectionResetError(104, "Connection reset by peer"))) == "Connection reset by peer"
    assert why_silent(TimeoutError("timed out")) == "timed out"
    assert why_silent(URLError("unknown url type: x")) == "<urlopen error unknown url type: x>"

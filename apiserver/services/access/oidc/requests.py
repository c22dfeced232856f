"""Asks the provider for JSON: within ten seconds and 256 KB, without following redirects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

SECONDS = 10.0
MOST_BYTES = 256 * 2**10


class ProviderFailed(Exception):
    """The provider gave no answer that can be used. The message says why, for the log."""


class StillFailing(ProviderFailed):
    """The provider failed a moment ago, and was not asked again. The log has said why."""


class Answer(NamedTuple):
    status: int
    content: dict[str, Any]


async def ask(
    url: str,
    *,
    form: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    seconds: float = SECONDS,
) -> Answer:
    """The JSON object that an address answers to a GET, or to a POST of a form, within `seconds`. ProviderFailed."""
    import aiohttp  # which takes a quarter of a second

    session = aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=seconds),
        headers={"accept": "application/json", "accept-encoding": "identity"},
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=True,  # HTTPS_PROXY
    )
    method = "GET" if form is None else "POST"
    body = bytearray()
    try:
        async with session, session.request(method, url, data=form, headers=headers, allow_redirects=False) as answer:
            async for chunk in answer.content.iter_any():
                body += chunk
                if len(body) > MOST_BYTES:
                    raise ProviderFailed(f"{url} answers more than {MOST_BYTES} bytes")
        content = orjson.loads(body)
    except TimeoutError:
        raise ProviderFailed(f"{url} does not answer within {seconds:.0f} seconds") from None
    except orjson.JSONDecodeError:
        raise ProviderFailed(f"{url} answers {answer.status}, without JSON") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise ProviderFailed(f"{url}: {str(error)[:300] or type(error).__name__}") from None
    if not isinstance(content, dict):
        raise ProviderFailed(f"{url} answers no JSON object")
    return Answer(answer.status, content)

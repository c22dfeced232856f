"""Verifies the provider's ID tokens: who signed in, said by whom, to whom, when, and in answer to which question.

Only signatures by a private key count. An algorithm such as HS256 would take for its key what everybody can read, and
`none` takes no key at all.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import jwt

#: The algorithms whose signatures count, each with the type of its keys.
ALGORITHMS = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    "EdDSA": "OKP",
}
#: Seconds by which the provider's clock may differ.
LEEWAY = 60
_LONGEST = 64 * 2**10
#: Most keys that are tried for a token that names none.
_MOST_TRIED = 8

Claims = Mapping[str, Any]


class BadIdToken(Exception):
    """The ID token does not prove who signed in; the message says why, for the log."""


class UnknownKey(BadIdToken):
    """The token is signed by a key that is not among the provider's keys. The provider may have a new one."""


def verified(
    token: str,
    keys: Sequence[Mapping[str, Any]],
    *,
    issuer: str,
    client_id: str,
    nonce: str,
    access_token: str | None = None,
) -> Claims:
    """The claims of an ID token. `keys` are the provider's (JWK). BadIdToken, or UnknownKey."""
    algorithm, candidates = _keys_for(token, keys)
    claims = _signed(token, algorithm, candidates, issuer, client_id)
    audience, authorized = claims["aud"], claims.get("azp")
    if authorized is not None and authorized != client_id:
        raise BadIdToken("it was made for another client (azp)")
    if isinstance(audience, list) and len(audience) > 1 and authorized is None:
        raise BadIdToken("it is for several clients, and does not say who asked for it (azp)")
    if not isinstance(claims.get("nonce"), str) or not hmac.compare_digest(claims["nonce"].encode(), nonce.encode()):
        raise BadIdToken("it is not the answer to this sign-in (nonce)")
    if not isinstance(claims["sub"], str) or not 0 < len(claims["sub"]) <= 255:
        raise BadIdToken("it names nobody (sub)")
    if "at_hash" in claims and claims["at_hash"] != _digest(algorithm, access_token or ""):
        raise BadIdToken("it came with another access token (at_hash)")
    return claims


def _keys_for(token: str, keys: Sequence[Mapping[str, Any]]) -> tuple[str, list[jwt.PyJWK]]:
    """The algorithm that a token names, and the keys that may have signed it."""
    if len(token) > _LONGEST:
        raise BadIdToken("it is too long")
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.InvalidTokenError, ValueError, RecursionError) as error:
        raise BadIdToken(f"it cannot be read: {error}") from None
    algorithm, name = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise BadIdToken(f"its algorithm {algorithm!r} does not count")
    if "crit" in header:
        raise BadIdToken("it wants an extension to be understood (crit)")
    fitting = [
        key
        for key in keys
        if key.get("kty") == ALGORITHMS[algorithm]
        and key.get("use", "sig") == "sig"
        and key.get("alg", algorithm) == algorithm
        and (name is None or key.get("kid") == name)
    ]
    candidates = [made for key in fitting[:_MOST_TRIED] if (made := _key(key, algorithm)) is not None]
    if not candidates:
        raise UnknownKey(f"the provider has no key {name!r} for {algorithm}")
    return algorithm, candidates


def _key(key: Mapping[str, Any], algorithm: str) -> jwt.PyJWK | None:
    try:
        return jwt.PyJWK(dict(key), algorithm)
    except (jwt.PyJWTError, ValueError, TypeError):
        return None


def _signed(token: str, algorithm: str, keys: Sequence[jwt.PyJWK], issuer: str, client_id: str) -> dict[str, Any]:
    required: Any = {"require": ["exp", "iat", "iss", "aud", "sub"]}
    for key in keys:
        try:
            return jwt.decode(
                token, key, [algorithm], audience=client_id, issuer=issuer, leeway=LEEWAY, options=required
            )
        except jwt.InvalidSignatureError:
            continue
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise BadIdToken(str(error)[:200]) from None
    raise BadIdToken("its signature is wrong")


def _digest(algorithm: str, access_token: str) -> str:
    """The `at_hash` of an access token: the left half of its digest."""
    bits = "512" if algorithm == "EdDSA" else algorithm[2:]
    digest = hashlib.new(f"sha{bits}", access_token.encode()).digest()
    return urlsafe_b64encode(digest[: len(digest) // 2]).rstrip(b"=").decode()

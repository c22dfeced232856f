"""ID tokens: each claim and header that must hold, wrong, and every kind of key."""

from __future__ import annotations

import hashlib
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from apiserver.services.access.oidc.id_tokens import LEEWAY, BadIdToken, UnknownKey, verified

ISSUER, CLIENT, NONCE = "https://id.example.org", "events", "the nonce"
RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()

RSA_JWK = {**RSAAlgorithm.to_jwk(RSA.public_key(), as_dict=True), "kid": "r"}
EC_JWK = {**ECAlgorithm.to_jwk(EC.public_key(), as_dict=True), "kid": "e"}
ED_JWK = {**OKPAlgorithm.to_jwk(ED.public_key(), as_dict=True), "kid": "d"}
KEYS: list[Mapping[str, Any]] = [RSA_JWK, EC_JWK, ED_JWK]
PEM = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def claims(**changed: Any) -> dict[str, Any]:
    """The claims of a token made now. A changed one may be a function of the time."""
    now = int(time.time())
    said = {"iss": ISSUER, "aud": CLIENT, "sub": "ada", "iat": now, "exp": now + 60, "nonce": NONCE, **changed}
    told = {name: value(now) if callable(value) else value for name, value in said.items()}
    return {name: value for name, value in told.items() if value is not None}


def token(key: Any = EC, algorithm: str = "ES256", kid: str | None = "e", header: Any = None, **changed: Any) -> str:
    named = {} if kid is None else {"kid": kid}
    return jwt.encode(claims(**changed), key, algorithm, {**named, **(header or {})})


def read(token: str, keys: list[Mapping[str, Any]] = KEYS, access_token: str | None = None) -> Mapping[str, Any]:
    return verified(token, keys, issuer=ISSUER, client_id=CLIENT, nonce=NONCE, access_token=access_token)


@pytest.mark.parametrize(
    ("key", "algorithm", "kid"),
    [(RSA, "RS256", "r"), (RSA, "PS512", "r"), (EC, "ES256", "e"), (ED, "EdDSA", "d"), (RSA, "RS256", None)],
)
def test_tokens_of_private_keys_count(key: Any, algorithm: str, kid: str | None) -> None:
    assert read(token(key, algorithm, kid))["sub"] == "ada"


@pytest.mark.parametrize(
    "changed",
    [
        {"aud": [CLIENT]},
        {"aud": [CLIENT, "another"], "azp": CLIENT},
        {"azp": CLIENT},
        {"exp": lambda now: now - LEEWAY + 30},
        {"iat": lambda now: now + LEEWAY - 30},
    ],
)
def test_what_holds_is_taken(changed: dict[str, Any]) -> None:
    assert read(token(**changed))["sub"] == "ada"


@pytest.mark.test
@pytest.mark.parametrize(
    "changed",
    [
        *({name: None} for name in ("iss", "aud", "sub", "iat", "exp", "nonce")),
        *({"iss": wrong} for wrong in (f"{ISSUER}/", "https://evil.example", "")),
        *({"aud": wrong} for wrong in ("another", [], ["another"], [CLIENT, "another"], f"{CLIENT} ")),
        {"azp": "another"},
        {"aud": [CLIENT, "another"], "azp": "another"},
        *({"nonce": wrong} for wrong in ("another", "", 5, [NONCE])),
        *({"exp": wrong} for wrong in (0, "soon", lambda now: now - LEEWAY - 30)),
        {"iat": lambda now: now + LEEWAY + 600},
        {"nbf": lambda now: now + LEEWAY + 600},
        *({"sub": wrong} for wrong in ("", "a" * 256)),
        {"at_hash": "AAAA"},
        {"at_hash": 5},
    ],
)
def test_what_does_not_hold_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(BadIdToken):
        read(token(**changed), access_token="secret")


def test_the_digest_of_the_access_token_is_compared() -> None:
    digest = urlsafe_b64encode(hashlib.sha256(b"secret").digest()[:16]).rstrip(b"=").decode()
    assert read(token(at_hash=digest), access_token="secret")
    with pytest.raises(BadIdToken, match="at_hash"):
        read(token(at_hash=digest), access_token="another")
    with pytest.raises(BadIdToken, match="at_hash"):
        read(token(at_hash=digest))


def test_algorithms_that_anybody_can_sign_with_are_refused() -> None:
    forged = [
        jwt.encode(claims(), None, "none", {"kid": "r"}),  # type: ignore[arg-type]  # such a token has no key
        _by_hmac(PEM),
        _by_hmac(b"the secret of the client, long enough"),
    ]
    for one in forged:
        with pytest.raises(BadIdToken, match="algorithm"):
            read(one)


@pytest.mark.parametrize("kid", ["e", "other", None])
def test_another_key_counts_for_nothing_whatever_it_is_called(kid: str | None) -> None:
    with pytest.raises(BadIdToken):
        read(token(ec.generate_private_key(ec.SECP256R1()), kid=kid))


def test_a_key_that_is_unknown_is_told_apart() -> None:
    for wrong in (token(kid="new"), token(RSA, "RS256", kid="e"), token(ED, "EdDSA", kid="r")):
        with pytest.raises(UnknownKey):
            read(wrong)


@pytest.mark.parametrize(
    "said", [{"use": "enc"}, {"alg": "ES384"}, {"kty": "oct"}, {"x": "?"}, {"x": 5}, {"crv": "P-521"}]
)
def test_keys_for_something_else_are_not_taken(said: dict[str, Any]) -> None:
    with pytest.raises(BadIdToken):
        read(token(), [{**EC_JWK, **said}])


def test_an_extension_that_must_be_understood_is_refused() -> None:
    with pytest.raises(BadIdToken):
        read(token(header={"crit": ["b64"], "b64": True}))


@pytest.mark.parametrize("text", ["", "a.b.c", "....", "é.é.é", "e30.e30.e30", "a" * 100_000, "\ud800.a.b"])
def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(BadIdToken):
        read(text)


def test_a_changed_token_is_refused() -> None:
    head, body, signature = token().split(".")
    other = token(sub="eve").split(".")[1]
    for changed in (f"{head}.{other}.{signature}", f"{head}.{body}.", f"{head}.{body}.{signature[::-1]}"):
        with pytest.raises(BadIdToken):
            read(changed)


def _by_hmac(secret: bytes) -> str:
    """A token signed with HS256, also by a secret that PyJWT would not take."""
    import hmac

    def part(content: bytes) -> bytes:
        return urlsafe_b64encode(content).rstrip(b"=")

    signed = token().split(".")[1].encode()
    content = part(b'{"alg": "HS256", "kid": "r"}') + b"." + signed
    return (content + b"." + part(hmac.digest(secret, content, "sha256"))).decode()

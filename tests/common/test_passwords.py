"""Hashes of passwords."""

from __future__ import annotations

import pytest

from apiserver.common.passwords import check_hash, check_name, hash_password, matches, nobodys_hash


@pytest.mark.parametrize("password", ["correct horse", "pässwörd", "1234567\udcff", " " * 8, "x" * 10_000])
def test_a_hash_is_of_one_password(password: str) -> None:
    hashed = hash_password(password, 16)
    assert password not in hashed
    assert hashed.startswith("scrypt$16$8$3$")
    assert hashed != hash_password(password, 16)
    assert matches(password, hashed)
    assert not matches(password + "x", hashed)
    assert not matches("", hashed)


@pytest.mark.parametrize("cost", [16, 32])
def test_the_cost_of_a_hash_is_its_own(cost: int) -> None:
    assert matches("correct horse", hash_password("correct horse", cost))


def test_nobodys_hash_is_of_no_password() -> None:
    check_hash(nobodys_hash(16))
    assert not matches("", nobodys_hash(16))


def test_the_cost_is_what_owasp_advises() -> None:
    assert nobodys_hash().startswith("scrypt$32768$8$3$")


def test_short_passwords_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 8 characters"):
        hash_password("1234567")


GOOD = "scrypt$16$8$3$AAAAAAAAAAAAAAAAAAAAAA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="


@pytest.mark.parametrize(
    "text",
    [
        "",
        "secret",
        GOOD.replace("scrypt", "bcrypt"),
        GOOD.replace("$16$", "$17$"),
        GOOD.replace("$16$", "$1$"),
        GOOD.replace("$16$", "$x$"),
        GOOD.replace("$16$", f"${2**22}$"),
        GOOD.replace("$3$", f"${2**20}$"),
        GOOD.replace("$3$", "$0$"),
        GOOD.replace("$8$", "$-8$"),
        GOOD.replace("AAAAAAAAAAAAAAAAAAAAAA==$", "$"),
        GOOD.replace("AA=", "AA"),
        GOOD + "$",
        GOOD.rpartition("$")[0] + "$AAAA",
    ],
)
def test_what_is_no_hash_is_refused(text: str) -> None:
    check_hash(GOOD)
    with pytest.raises(ValueError, match="apiserver user hash"):
        check_hash(text)


@pytest.mark.parametrize(
    "name", ["alice", "Alice B. Carroll", "älice", "a" * 200, "ABCDEFGHIJ0123456789x", "a@b.example"]
)
def test_names_of_people_may_log_in(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["", "  ", "a:b", "a" * 201, "ABCDEFGHIJ0123456789", "EYVQ385RW7Y2QQUH88CZ7DWIQ1WUHP"])
def test_other_names_may_not(name: str) -> None:
    with pytest.raises(ValueError, match="needs a name"):
        check_name(name)

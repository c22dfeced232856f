"""Addresses of MongoDB: what they say, and what is wrong with them."""

from __future__ import annotations

import re

import pytest

from apiserver.stores.documents.mongo.engine import mongo_uri


def test_a_mongo_address_stays_as_it_is_but_for_the_password() -> None:
    assert mongo_uri("mongodb://a:1,b/db?replicaSet=x") == "mongodb://a:1,b/db?replicaSet=x"
    assert mongo_uri("mongodb+srv://me:p@host/db") == "mongodb+srv://me:p@host/db"
    assert mongo_uri("mongodb://m%40e@a,b/db?tls=true", password="p@/") == "mongodb://m%40e:p%40%2F@a,b/db?tls=true"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("mongodb:///db", "the address names no host"),
        ("mongodb://me:hunter2@host", "the address ends with no database"),
        ("mongodb://host/?tls=true", "the address ends with no database"),
        ("mongodb://me:12/hunter2@host/db", "in user and password, write '/'"),
        ("mongodb://host/a.b", "'a.b' cannot be the name of a database"),
    ],
)
def test_a_bad_mongo_address_is_named(address: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}") as caught:
        mongo_uri(address)
    assert "hunter2" not in str(caught.value)


def test_a_password_needs_a_user() -> None:
    with pytest.raises(ValueError, match="needs a user"):
        mongo_uri("mongodb://host/db", password="p")


def test_a_password_is_given_once() -> None:
    with pytest.raises(ValueError, match="give it once"):
        mongo_uri("mongodb://me:hunter2@mongo/db", password="other")

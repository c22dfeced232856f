"""Names of users as keys of documents."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.services.documents.keys import escape, escape_keys, escape_path, unescape, unescape_keys

names = st.text(alphabet=st.one_of(st.sampled_from("%.$\0aE245"), st.characters(exclude_categories=["Cs"])))
json = st.recursive(
    st.none() | st.booleans() | st.integers() | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=10,
)


@given(names)
def test_a_name_comes_back_as_it_was(name: str) -> None:
    assert unescape(escape(name)) == name


@given(names)
def test_a_key_is_safe_to_store_and_to_put_into_a_path(name: str) -> None:
    key = escape(name)
    assert key
    assert not set(key) & set(".$\0")


@given(names, names)
def test_different_names_have_different_keys(one: str, other: str) -> None:
    assert (escape(one) == escape(other)) == (one == other)


@pytest.mark.test
@given(json)
def test_a_value_comes_back_as_it_was_and_only_its_keys_change(value: object) -> None:
    assert unescape_keys(escape_keys(value)) == value


@pytest.mark.parametrize(
    ("name", "key"), [("lr", "lr"), ("a.b", "a%2Eb"), ("$x", "%24x"), ("50%", "50%25"), ("", "%"), ("%2E", "%252E")]
)
def test_keys_are_what_clients_write_in_paths(name: str, key: str) -> None:
    assert escape(name) == key
    assert unescape(key) == name


def test_paths_keep_their_dots_and_their_escapes() -> None:
    assert escape_path("hyperparams.Args.a%2Eb.value") == "hyperparams.Args.a%2Eb.value"
    assert escape_path("runtime.$x") == "runtime.%24x"

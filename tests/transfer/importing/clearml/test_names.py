"""Keys as ClearML's server escapes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.transfer.importing.clearml.names import escape, unescape, unescape_if_escaped

PAIRS = {
    "plain": "plain",
    "a.b": "a%2Eb",
    "$x": "%24x",
    "100%": "100%%",
    "%2E": "%%2E",
    "__dunder__": "%_%_dunder%_%_",
    "_lead": "%_lead",
    "___": "%_%__",
    "%_x": "%%_x",
    "a_b": "a_b",
}


@pytest.mark.parametrize(("name", "key"), PAIRS.items())
def test_keys_as_the_server_writes_them(name: str, key: str) -> None:
    assert escape(name) == key
    assert unescape(key) == name


@given(st.text(alphabet="a.$_%2E4 é", min_size=1).map(str.strip).filter(bool))
def test_every_name_comes_back(name: str) -> None:
    assert unescape(escape(name)) == name
    assert unescape_if_escaped(escape(name)) == name


@pytest.mark.parametrize("name", ["_pid", "a.b", "50%", "$x"])
def test_names_that_were_not_escaped_stay(name: str) -> None:
    assert unescape_if_escaped(name) == name

"""Random documents, filters and updates, of few names and values so that they meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from apiserver.stores.documents.query import (
    AllOf,
    AnyOf,
    AsNumber,
    AtLeast,
    AtMost,
    Both,
    Comparison,
    Document,
    Equal,
    Filter,
    FirstNumber,
    Greater,
    HasAll,
    HasSize,
    In,
    Less,
    Matches,
    NoneOf,
    NotIn,
    Test,
    Unequal,
    Update,
)

SINGLES: list[Any] = [
    *[None, True, False, 0, 1, 2, -1, 0.5, 1.0, 0.30000000000000004, 1e17, 10**17 + 1, -(2**63)],
    *["", "a", "b", "é", "A\n", "0", "\x00", "5e-1", "0.5\n", "-1"],
]
"""Values of every class that holds no others."""

_common = st.sampled_from(SINGLES)
scalars = st.one_of(
    _common,
    _common,
    _common,
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
)
names = st.sampled_from(["a", "b", "0", 'q"'])
_inner = scalars | st.lists(scalars, max_size=3) | st.dictionaries(names, scalars, max_size=3)
values = st.one_of(
    scalars,
    scalars,
    st.lists(scalars, max_size=3),
    st.dictionaries(names, _inner, max_size=3),
    st.lists(st.dictionaries(names, _inner, min_size=1, max_size=3), max_size=3),
    st.lists(_inner, max_size=3),
)
"""Any value that a document may hold."""

tops = st.sampled_from(["a", "a", "big", "b", 'q"'])
_below = [(), ("a",), ("b",), ("0",), ('q"',), ("a", "a"), ("0", "b"), ("a", "0")]
paths = st.tuples(tops, st.sampled_from([(), *_below])).map(lambda names: ".".join([names[0], *names[1]]))
first_numbers = st.builds(
    lambda top, below: FirstNumber(tuple(".".join([top, *names]) for names in below)),
    tops,
    st.lists(st.sampled_from(_below), min_size=2, max_size=4, unique=True),
)
key_paths = st.sampled_from(["key", "deep.key", "id"])


def documents(identity: str) -> st.SearchStrategy[Document]:
    """A document of a collection whose indexed fields are `key` and `deep.key`, and `big` is kept apart."""
    return st.fixed_dictionaries(
        {"id": st.just(identity), "a": values},
        optional={
            "b": values,
            "big": values,
            'q"': values,
            "key": scalars,
            "deep": st.dictionaries(st.just("key"), scalars) | st.integers(-1, 1),
        },
    )


collections = st.tuples(*(documents(str(number)) for number in range(6))).map(list)

_patterns = st.sampled_from(["a", "^a", "b$", "^$", ".", "[0-9]", "é|B"])
COMPARISONS: tuple[Callable[[Any], Test], ...] = (Equal, Unequal, Less, AtMost, Greater, AtLeast)
NUMERIC: tuple[Callable[[Any], Comparison], ...] = (Equal, Less, AtMost, Greater, AtLeast)
_comparison = st.builds(lambda test, value: test(value), st.sampled_from(COMPARISONS), scalars | values)

_tests: st.SearchStrategy[Test] = st.one_of(
    _comparison,
    st.builds(Both, _comparison, _comparison),
    st.builds(lambda test, items: test(items), st.sampled_from([In, NotIn, HasAll]), st.lists(values, max_size=4)),
    st.builds(HasSize, st.integers(0, 3)),
    st.builds(lambda test, number: AsNumber(test(number)), st.sampled_from(NUMERIC), st.sampled_from([-1, 0, 0.5, 2])),
    st.builds(Matches, _patterns, st.booleans()),
)


def _joined(inner: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
    lists = st.lists(inner, min_size=1, max_size=3)
    return st.builds(lambda combined, parts: combined(parts), st.sampled_from([AllOf, AnyOf, NoneOf]), lists)


_wanted = scalars | _tests | values
_plain: st.SearchStrategy[Filter] = st.dictionaries(paths | paths | key_paths, _wanted, min_size=1, max_size=2)
_first: st.SearchStrategy[Filter] = st.dictionaries(first_numbers, _wanted, min_size=1, max_size=2)
_single = _plain | _plain | _first
filters = _single | _single | _joined(_single) | _joined(_joined(_single))
"""Any valid filter."""

sorts = st.lists(st.tuples(paths | key_paths | first_numbers, st.sampled_from([1, -1])), min_size=1, max_size=2)

_changed = paths | st.just("key")


def _fields(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.dictionaries(_changed, values, min_size=1, max_size=2)


_words: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("set", "min", "max"), _fields(values)),
    **dict.fromkeys(("push", "add"), _fields(st.lists(values, max_size=3))),
    "unset": st.lists(_changed, min_size=1, max_size=2),
    "pull": _fields(values | _tests),
}
updates: st.SearchStrategy[Update] = st.sets(st.sampled_from(sorted(_words)), min_size=1, max_size=3).flatmap(
    lambda chosen: st.builds(Update, **{word: _words[word] for word in sorted(chosen)})
)
"""Any update that is well-formed; it may conflict with itself or not fit a document."""


def nested(path: str, document: Document, value: Any) -> Document:
    """The document with the value put at the path."""
    *parents, last = path.split(".")
    holder = document
    for name in parents:
        holder = holder.setdefault(name, {})
    holder[last] = value
    return document

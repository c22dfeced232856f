"""Random documents, filters and updates, of few names and values so that they meet."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from apiserver.stores.documents.base import Document, Filter, Update

_NAMES = ["a", "b", "0", "1", 'q"', "ü"]

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.sampled_from([2**63 - 1, -(2**63), 10**17 + 1]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.1, 0.30000000000000004, 1.0, 1e17, -0.0]),
    st.sampled_from(["", "a", "b", "ab", "B", "1", "é", "\x00", 'q"', "\\", "a\n"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
)
names = st.sampled_from(_NAMES)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=6
)
"""Any value that a document may hold."""

tops = st.sampled_from(["a", "b", "big", 'q"'])
paths = st.lists(names, max_size=3).flatmap(lambda rest: tops.map(lambda top: ".".join([top, *rest])))
key_paths = st.sampled_from(["key", "deep.key", "id"])


def documents(identity: str) -> st.SearchStrategy[Document]:
    """A document of a collection whose indexed fields are `key` and `deep.key`, and `big` is kept apart."""
    return st.fixed_dictionaries(
        {"id": st.just(identity)},
        optional={
            "a": values,
            "b": values,
            "big": values,
            'q"': values,
            "key": scalars,
            "deep": st.dictionaries(st.just("key"), scalars) | st.integers(-1, 1),
        },
    )


collections = st.lists(st.integers(0, 99), max_size=8, unique=True).flatmap(
    lambda numbers: st.tuples(*(documents(str(number)) for number in numbers)).map(list)
)

_patterns = st.sampled_from(["a", "^a", "b$", "^$", ".", "[0-9]", "é|B"])
_comparisons = st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"])


def _operators(inner: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
    simple = st.one_of(
        st.dictionaries(_comparisons, values, min_size=1, max_size=2),
        st.builds(
            lambda op, items: {op: items}, st.sampled_from(["$in", "$nin", "$all"]), st.lists(values, max_size=4)
        ),
        st.builds(lambda wanted: {"$exists": wanted}, st.booleans()),
        st.builds(lambda size: {"$size": size}, st.integers(0, 3)),
        st.builds(
            lambda pattern, options: {"$regex": pattern, **options}, _patterns, st.sampled_from([{}, {"$options": "i"}])
        ),
    )
    elements = st.builds(lambda condition: {"$elemMatch": condition}, simple | inner)
    return simple | elements | st.builds(lambda operators: {"$not": operators}, simple | elements)


def _fields(inner: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
    return st.dictionaries(paths | key_paths, values | _operators(inner), max_size=2)


def _joined(inner: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
    lists = st.lists(inner, min_size=1, max_size=3)
    return st.builds(lambda op, items: {op: items}, st.sampled_from(["$and", "$or", "$nor"]), lists) | _fields(inner)


filters = st.recursive(_fields(st.just({})), _joined, max_leaves=4)
"""Any valid filter."""

sorts = st.lists(st.tuples(paths | key_paths, st.sampled_from([1, -1])), min_size=1, max_size=2)

_lists: st.SearchStrategy[Any] = values | st.builds(lambda items: {"$each": items}, st.lists(values, max_size=3))
_operand_of: dict[str, st.SearchStrategy[Any]] = {
    "$set": values,
    "$unset": st.just(1),
    "$inc": st.integers(-3, 3) | st.floats(-1e6, 1e6),
    "$min": values,
    "$max": values,
    "$push": _lists,
    "$addToSet": _lists,
    "$pull": values,
}
updates: st.SearchStrategy[Update] = st.dictionaries(
    st.sampled_from(sorted(_operand_of)), st.none(), min_size=1, max_size=3
).flatmap(
    lambda chosen: st.fixed_dictionaries(
        {op: st.dictionaries(paths | st.just("key"), _operand_of[op], min_size=1, max_size=2) for op in chosen}
    )
)
"""Any update that is well-formed; it may conflict with itself or not fit a document."""

"""The words in which services ask for documents and change them. `base` and `dialect` say what the words mean.

A filter is an object of paths and what is wanted there, or a combination of filters. What is wanted is a value, or a
test of the values there. For example, drafts that are named "a" or "b" and have no tag "old":

    AllOf([{"status": "created", "tags": Unequal("old")}, AnyOf([{"name": "a"}, {"name": "b"}])])

A number that may lie at one of several paths is named by all of them: `{FirstNumber(("a.b", "a.c")): Less(1)}`.

`FindQuery` says besides the filter in which order documents are found, and what is read of them.

An update says what to do with which fields: `Update(set={"status": "queued"}, add={"tags": ["new"]})`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeAlias, TypeVar

T_co = TypeVar("T_co", covariant=True)
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FirstNumber:
    """In a filter or a sort, in place of a path: the number at the first of some paths that lead to one, else null."""

    paths: tuple[str, ...]


Place: TypeAlias = str | FirstNumber
"""What a filter or a sort is about: the values at a path, or the first number at some paths."""
Sort = Sequence[tuple[Place, int]]
Counted = Callable[[int], None]


class Test:
    """A test of the values at a path. A list passes if it passes as a whole, or if one of its items does."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Comparison(Test):
    """A comparison with a value. Only values of the same class (text, number …) pass."""

    value: Any


class Equal(Comparison):
    """Equal to the value. A filter says the same with the value itself."""

    __slots__ = ()


class Less(Comparison):
    """Less than the value."""

    __slots__ = ()


class AtMost(Comparison):
    """Less than the value, or equal to it."""

    __slots__ = ()


class Greater(Comparison):
    """Greater than the value."""

    __slots__ = ()


class AtLeast(Comparison):
    """Greater than the value, or equal to it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Unequal(Test):
    """Not equal to the value, and no list with this value in it."""

    value: Any


@dataclass(frozen=True, slots=True)
class In(Test):
    """Equal to one of the values."""

    values: Collection[Any]


@dataclass(frozen=True, slots=True)
class NotIn(Test):
    """Unequal to each of the values."""

    values: Collection[Any]


@dataclass(frozen=True, slots=True)
class HasAll(Test):
    """A list that has all values in it, or a single value that equals all of them. Without values, nothing passes."""

    values: Collection[Any]


@dataclass(frozen=True, slots=True)
class HasSize(Test):
    """A list with this number of items."""

    size: int


@dataclass(frozen=True, slots=True)
class Matches(Test):
    """A text in which the pattern, in RE2's syntax, is found. `any_case`: upper and lower case are the same."""

    pattern: str
    any_case: bool = False


@dataclass(frozen=True, slots=True)
class AsNumber(Test):
    """A number, or a text that is one (`"1e-3"`), that passes a comparison with a number."""

    test: Comparison


@dataclass(frozen=True, slots=True)
class Both(Test):
    """Passes both tests, such as those of the two ends of a range. Two items of a list may pass one each."""

    one: Test
    other: Test


@dataclass(frozen=True, slots=True)
class AllOf(Generic[T_co]):
    """All parts are met. Without parts, this is always so."""

    parts: Sequence[T_co]


@dataclass(frozen=True, slots=True)
class AnyOf(Generic[T_co]):
    """At least one part is met. Without parts, this is never so."""

    parts: Sequence[T_co]


@dataclass(frozen=True, slots=True)
class NoneOf(Generic[T_co]):
    """No part is met. Without parts, this is always so."""

    parts: Sequence[T_co]


_Fields: TypeAlias = Mapping[str, Any] | Mapping[FirstNumber, Any] | Mapping[Place, Any]
Filter: TypeAlias = "_Fields | AllOf[Filter] | AnyOf[Filter] | NoneOf[Filter]"


def combined(how: type[AllOf[Filter]] | type[AnyOf[Filter]], conditions: Iterable[Filter]) -> Filter:
    """The combination of conditions, of which empty ones do not count; a single one needs none; `{}` for none."""
    present = [condition for condition in conditions if condition]
    if len(present) <= 1:
        return present[0] if present else {}
    return how(present)


def all_of(conditions: Iterable[Filter]) -> Filter:
    """The filter for documents that meet every condition."""
    return combined(AllOf, conditions)


@dataclass(frozen=True, slots=True)
class FindQuery:
    """Which documents are found, in which order, and what is read of each.

    The documents that meet `filter`, without the first `skip` of them, and at most `limit` (None: all). `projection`
    names the (dotted) fields to return; None returns all, and `id` is always returned. `counted` is called with the
    bytes of documents as they are read, perhaps in a thread. If it raises, reading ends.
    """

    filter: Filter
    projection: Sequence[str] | None = None
    sort: Sort = ()
    skip: int = 0
    limit: int | None = None
    counted: Counted | None = None

    def within(self, filter: Filter) -> FindQuery:
        """The same query with another filter."""
        return FindQuery(filter, self.projection, self.sort, self.skip, self.limit, self.counted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Changes of fields, by their dotted paths. Each field may be changed by one word only.

    `set`, `unset`: the new values, and the fields to remove. `min`, `max`: values that the fields are lowered or raised
    to. `push`: items to append to lists. `add`: the same, but only items that are not there yet. `pull`: which items to
    remove from lists: those that equal a value, pass a test, or have fields that meet a filter.
    """

    set: Mapping[str, Any] = field(default_factory=dict)
    unset: Collection[str] = ()
    min: Mapping[str, Any] = field(default_factory=dict)
    max: Mapping[str, Any] = field(default_factory=dict)
    push: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    add: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    pull: Mapping[str, Any] = field(default_factory=dict)

    def setting(self, fields: Mapping[str, Any]) -> Update:
        """This update, which also sets those of the fields that it does not set yet."""
        return replace(self, set={**fields, **self.set})

    def by_word(self) -> dict[str, Mapping[str, Any]]:
        """The fields that each word changes, without words that change none."""
        words = {"set": self.set, "unset": dict.fromkeys(self.unset, True), "min": self.min, "max": self.max}
        words |= {"push": self.push, "add": self.add, "pull": self.pull}
        return {word: fields for word, fields in words.items() if fields}

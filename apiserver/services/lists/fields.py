"""The fields that a `get_all` asks for by `only_fields`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from apiserver.services.documents.keys import escape_path
from apiserver.stores.documents.query import Document

#: Dotted fields as a tree of names: `a.b` and `a.c` are `{a: {b: {}, c: {}}}`.
_Names: TypeAlias = "dict[str, _Names]"


@dataclass(frozen=True, slots=True)
class Fields:
    """Dotted fields of an answer, none of them inside another."""

    answered: list[str] | None
    """The fields that are asked for; None for all."""
    read: list[str] | None
    """The stored fields that are read for them: `project` in place of `project.name` if `project` is a reference."""
    left_out: _Names
    """The fields that are removed from what was read."""

    def leave_out(self, documents: Iterable[Document]) -> None:
        """Remove from the documents, in place, the fields that are to be left out."""
        for document in documents if self.left_out else ():
            _drop(document, self.left_out)


def fields_of(request: Mapping[str, Any], references: Iterable[str] = ()) -> Fields:
    """The fields of `only_fields`; a "-" in front leaves a field out, though never the id.

    `references`: the paths at which documents refer to others, whose fields may be asked for, too.
    """
    listed = [field for field in request.get("only_fields") or [] if field]
    answered = outermost(escape_path(field) for field in listed if not field.startswith("-")) or None
    unwanted = [escape_path(field[1:]) for field in listed if field.startswith("-") and field not in ("-", "-id")]
    return Fields(answered, _stored(answered, references), _tree(outermost(unwanted)))


def _stored(fields: list[str] | None, references: Iterable[str]) -> list[str] | None:
    if fields is None:
        return None
    paths = list(references)
    return outermost(next((path for path in paths if field.startswith(f"{path}.")), field) for field in fields)


def outermost(fields: Iterable[str]) -> list[str]:
    """The dotted fields that are inside none of the others, sorted: `a`, `a.b`, `b.c` give `["a", "b.c"]`.

    The fields inside another one come right after it when fields are sorted by their lists of names.
    """
    outer: list[str] = []
    for field in sorted(set(fields), key=lambda field: field.split(".")):
        if not outer or not field.startswith(f"{outer[-1]}."):
            outer.append(field)
    return sorted(outer)


def _tree(fields: Iterable[str]) -> _Names:
    names: _Names = {}
    for field in fields:
        *above, last = field.split(".")
        inside = names
        for name in above:
            inside = inside.setdefault(name, {})
        inside[last] = {}
    return names


def _drop(value: Any, names: _Names) -> None:
    """Remove the named fields. It takes time only for names that the value has: thousands may be asked for."""
    if isinstance(value, list):
        for item in value:
            _drop(item, names)
    elif isinstance(value, dict):
        for name in value.keys() & names.keys():
            if names[name]:
                _drop(value[name], names[name])
            else:
                del value[name]

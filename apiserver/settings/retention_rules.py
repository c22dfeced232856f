"""Rules of retention: how long events are kept, by project and type. The first rule that fits counts.

For example, of the images of the project "lab/vision", or of one below it, each series keeps its newest 100 iterations;
log lines of all projects are kept for 90 days, but those of "lab/release" for ever:

    {project = "lab/vision", types = ["images"], keep = "100 iterations"}
    {project = "lab/release", types = ["logs"], keep = "for ever"}
    {types = ["logs"], keep = "90 d"}

Scalars need not go. Of tasks whose scalars are older than a year, each series keeps 2,000 points at most:

    {types = ["scalars"], keep = "1 y", then = "2000 points"}

What no rule fits is kept for ever.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

#: What rules call the types of events.
TYPES = ("scalars", "vectors", "images", "plots", "logs")
#: Types whose events a rule can keep by iterations.
BY_ITERATION = ("vectors", "images", "plots")
FOR_EVER = "for ever"
_DAY = 86_400_000
_DAYS = {"d": 1, "w": 7, "y": 365}
_AGE = re.compile(r"([1-9][0-9]{0,4}) ?([dwy])", re.ASCII)
_ITERATIONS = re.compile(r"(?:last )?([1-9][0-9]{0,8}) iterations?", re.ASCII)
_NOTHING = re.compile(r"0+ ?(?:[dwy]|iterations?)", re.ASCII)
_POINTS = re.compile(r"([1-9][0-9]{0,9}) points", re.ASCII)
#: To how many points a series can be thinned.
FEWEST_POINTS, MOST_POINTS = 12, 1_000_000
_LONGEST_PROJECT = 1000


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """What is kept of some types of events in some projects."""

    types: tuple[str, ...]
    keep: str
    """An age, such as "90 d", "12 w" or "1 y"; a number of iterations, such as "100 iterations"; or "for ever"."""
    project: str = ""
    """The path of a project, for those below it, too; "*" in it stands for any text without "/". "": all tasks."""
    then: str = ""
    """What scalars of this age become, such as "2000 points" a series; "": they are deleted."""

    @property
    def kept(self) -> str:
        """What is kept, for people: "90 d", or "1 y, then 2000 points"."""
        return f"{self.keep}, then {self.then}" if self.then else self.keep

    @property
    def points(self) -> int | None:
        """How many points each series of scalars of this age keeps at most; None if they are deleted."""
        found = _POINTS.fullmatch(self.then)
        return int(found[1]) if found else None

    @property
    def days(self) -> int | None:
        """The age up to which events are kept; None if they are not kept by age."""
        found = _AGE.fullmatch(self.keep)
        return int(found[1]) * _DAYS[found[2]] if found else None

    def before(self, now: int) -> int | None:
        """The time before which events are not kept, as of `now` (epoch ms); None if they are not kept by age."""
        days = self.days
        return None if days is None else now - days * _DAY

    @property
    def iterations(self) -> int | None:
        """How many of the newest iterations of each series are kept; None if they are not kept by iterations."""
        found = _ITERATIONS.fullmatch(self.keep)
        return int(found[1]) if found else None

    def fits(self, project: str | None, type: str) -> bool:
        """Whether the rule is about a type of events in a project (None: in none)."""
        return type in self.types and (not self.project or (project is not None and _is_in(project, self.project)))


def rule_for(rules: Sequence[RetentionRule], project: str | None, type: str) -> RetentionRule | None:
    """The rule that counts for a type of events in a project; None if they are kept for ever."""
    found = next((rule for rule in rules if rule.fits(project, type)), None)
    return None if found is None or found.keep == FOR_EVER else found


def shadowed(rules: Sequence[RetentionRule]) -> list[str]:
    """The rules that never count because an earlier one surely fits all that they fit, in a sentence each."""
    sentences = []
    for number, rule in enumerate(rules, 1):
        fits_all = (place for place, earlier in enumerate(rules[: number - 1], 1) if _fits_all_of(earlier, rule))
        if place := next(fits_all, None):
            sentences.append(
                f"retention: rule {number} never counts: rule {place} comes first, and fits all that it fits"
            )
    return sentences


def _fits_all_of(rule: RetentionRule, other: RetentionRule) -> bool:
    """Whether a rule surely fits all that another one fits. Of two different patterns with "*", nothing is sure."""
    if not set(other.types) <= set(rule.types):
        return False
    if rule.project in ("", other.project):
        return True
    return "*" not in rule.project and bool(other.project) and _is_in(other.project, rule.project)


def _is_in(project: str, pattern: str) -> bool:
    """Whether the first steps of a project's path fit the steps of the pattern: "lab/a/b" is in "l*/a"."""
    steps, wanted = project.split("/"), pattern.split("/")
    return len(steps) >= len(wanted) and all(map(_fits, steps, wanted))


def _fits(text: str, pattern: str) -> bool:
    """Whether a text fits a pattern. It never looks back, so no pattern takes long.

    For example, for "a*b*c" the text has to begin with "a" and to end with "c". Between the two, the first "b" will do:
    if a later one would, so does the first.
    """
    first, *middle = pattern.split("*")
    if not middle:
        return text == first
    last = middle.pop()
    if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
        return False
    place, end = len(first), len(text) - len(last)
    for part in middle:
        place = text.find(part, place, end)
        if place < 0:
            return False
        place += len(part)
    return True


def rules_of(items: Sequence[object]) -> tuple[RetentionRule, ...]:
    """The rules that tables say; ValueError names the rule, and what is wrong with it."""
    rules = []
    for number, item in enumerate(items, 1):
        try:
            rules.append(_rule(item))
        except ValueError as error:
            raise ValueError(f"rule {number}: {error}") from None
    return tuple(rules)


def _rule(item: object) -> RetentionRule:
    if not isinstance(item, dict):
        raise ValueError('it is no table, such as {types = ["logs"], keep = "90 d"}')
    names = [field.name for field in fields(RetentionRule)]
    if unknown := item.keys() - set(names):
        raise ValueError(f"a rule has no field {min(unknown)}, only {', '.join(names)}")
    types, project, keep, then = item.get("types"), item.get("project", ""), item.get("keep"), item.get("then", "")
    if not isinstance(types, (list, tuple)) or not types:
        raise ValueError(f'types: a list of {", ".join(TYPES)} is needed, such as ["logs"]')
    if unknown_types := [type for type in types if type not in TYPES]:
        raise ValueError(f"types: {repr(unknown_types[0])[:60]} is none of {', '.join(TYPES)}")
    _check_project(project)
    rule = RetentionRule(tuple(types), *(text if isinstance(text, str) else "" for text in (keep, project, then)))
    if rule.keep != FOR_EVER and rule.days is None and rule.iterations is None:
        possible = f"'90 d', '12 w', '1 y', '100 iterations', '{FOR_EVER}'"
        if keep is None:
            raise ValueError(f"keep: it is missing; give, for example, one of {possible}")
        least = "; the least is '1 d' or '1 iteration'" if _NOTHING.fullmatch(rule.keep) else ""
        raise ValueError(f"keep: {repr(keep)[:60]} is none of {possible}{least}")
    if rule.iterations is not None and (others := [type for type in types if type not in BY_ITERATION]):
        raise ValueError(f"keep: {others[0]} cannot be kept by iterations, only {', '.join(BY_ITERATION)} can")
    if then != "":
        _check_then(rule, then)
    return rule


def _check_then(rule: RetentionRule, then: object) -> None:
    if rule.points is None or not FEWEST_POINTS <= rule.points <= MOST_POINTS:
        bounds = f"from {FEWEST_POINTS} to {MOST_POINTS:,}"
        raise ValueError(f"then: {repr(then)[:60]} is no number of points {bounds}, such as '2000 points'")
    if rule.types != ("scalars",):
        raise ValueError('then: only scalars can be thinned: give them a rule of their own, types = ["scalars"]')
    if rule.days is None:
        raise ValueError(f"then: keep = {rule.keep!r} is no age, after which scalars could be thinned")


def _check_project(project: Any) -> None:
    if not isinstance(project, str) or len(project) > _LONGEST_PROJECT:
        raise ValueError(f"project: a text of at most {_LONGEST_PROJECT} characters is needed")
    if project and not all(project.split("/")):
        raise ValueError(f"project: {project!r} has an empty name between two '/', at its beginning or at its end")

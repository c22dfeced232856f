"""Rules of retention: how they are read, and which one counts."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from apiserver.events.model import EventType
from apiserver.settings.retention_rules import FEWEST_POINTS, TYPES, RetentionRule, rule_for, shadowed
from apiserver.settings.settings import Settings, SettingsError, masked
from apiserver.settings.sources import load
from apiserver.stores.events.codec import thinning
from tests.chance import examples

OLD_SCALARS = {"types": ["scalars"], "keep": "1 y"}
GIVEN = (
    '[{"types": ["images"], "keep": "last 100 iterations", "project": "lab/*"}, {"types": ["logs"], "keep": "90 d"}]'
)


def test_rules_know_every_type_of_events() -> None:
    assert set(TYPES) == {type.plural for type in EventType}


def test_rules_are_read_of_the_environment_and_shown_in_the_same_form() -> None:
    rules = load({}, {"APISERVER_RETENTION": GIVEN}).retention
    assert rules == (
        RetentionRule(("images",), "last 100 iterations", "lab/*"),
        RetentionRule(("logs",), "90 d"),
    )
    assert load({"retention": masked(Settings(retention=rules))["retention"]}).retention == rules


@pytest.mark.parametrize(
    ("keep", "days", "iterations"),
    [
        ("90 d", 90, None),
        ("90d", 90, None),
        ("12 w", 84, None),
        ("1 y", 365, None),
        ("100 iterations", None, 100),
        ("last 1 iteration", None, 1),
        ("for ever", None, None),
    ],
)
def test_what_is_kept(keep: str, days: int | None, iterations: int | None) -> None:
    (rule,) = load({"retention": [{"types": ["images"], "keep": keep}]}).retention
    assert (rule.days, rule.iterations) == (days, iterations)


@pytest.mark.test
@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"types": ["logs"], "keep": "90 dd"}, "rule 2: keep: '90 dd' is none of"),
        ({"types": ["logs"], "keep": "0 d"}, "rule 2: keep: '0 d' is none of .*; the least is '1 d' or '1 iteration'$"),
        ({"types": ["logs"], "keep": "-1 d"}, "rule 2: keep: '-1 d' is none of"),
        ({"types": ["logs"], "keep": "9" * 10_000 + " d"}, "rule 2: keep: "),
        ({"types": ["logs"], "keep": "٣ d"}, "rule 2: keep: '٣ d' is none of"),
        ({"types": ["logs"], "keep": 90}, "rule 2: keep: 90 is none of"),
        ({"types": ["logs"]}, "rule 2: keep: it is missing; give, for example, one of '90 d', "),
        ({"types": ["logs"], "keep": "100 iterations"}, "rule 2: keep: logs cannot be kept by iterations"),
        ({"types": ["images", "scalars"], "keep": "9 iterations"}, "rule 2: keep: scalars cannot be kept by iteration"),
        ({"types": ["console"], "keep": "90 d"}, "rule 2: types: 'console' is none of scalars, vectors, "),
        (
            {"types": ["logs", "log"], "keep": "90 d"},
            "rule 2: types: 'log' is none of scalars, vectors, images, plots, logs",
        ),
        ({"types": [["logs"]], "keep": "90 d"}, "rule 2: types: "),
        ({"types": "logs", "keep": "90 d"}, "rule 2: types: a list of scalars, vectors, images, plots, logs is needed"),
        ({"types": [], "keep": "90 d"}, "rule 2: types: "),
        ({"types": ["logs"], "keep": "90 d", "project": "lab/"}, "rule 2: project: 'lab/' has an empty name"),
        ({"types": ["logs"], "keep": "90 d", "project": 7}, "rule 2: project: a text"),
        ({"types": ["logs"], "keep": "90 d", "projects": "x"}, "rule 2: a rule has no field projects"),
        ("logs 90 d", "rule 2: it is no table"),
        (
            OLD_SCALARS | {"then": "11 points"},
            "rule 2: then: '11 points' is no number of points from 12",
        ),
        (OLD_SCALARS | {"then": "1000001 points"}, "rule 2: then: '1000001 points' is no number"),
        (OLD_SCALARS | {"then": "9" * 10_000 + " points"}, "rule 2: then: "),
        (OLD_SCALARS | {"then": "٣٣ points"}, "rule 2: then: "),
        (OLD_SCALARS | {"then": "averages"}, "rule 2: then: 'averages' is no number"),
        (OLD_SCALARS | {"then": 2000}, "rule 2: then: 2000 is no number"),
        (OLD_SCALARS | {"then": None}, "rule 2: then: None is no number"),
        (OLD_SCALARS | {"then": ["2000 points"]}, "rule 2: then: "),
        (OLD_SCALARS | {"then": "2000 points", "types": ["logs"]}, "rule 2: then: only scalars can be thinned"),
        (OLD_SCALARS | {"then": "20 points", "types": ["scalars", "logs"]}, "rule 2: then: only scalars can be"),
        (OLD_SCALARS | {"then": "20 points", "keep": "for ever"}, "rule 2: then: keep = 'for ever' is no age"),
    ],
)
def test_a_wrong_rule_names_itself_and_the_field(rule: Any, said: str) -> None:
    with pytest.raises(SettingsError, match=f"^--retention: {said}"):
        load({"retention": [{"types": ["logs"], "keep": "for ever"}, rule]})


@pytest.mark.parametrize("points", [12, 2000, 1_000_000])
def test_scalars_that_are_thinned(points: int) -> None:
    (rule,) = load({"retention": [OLD_SCALARS | {"then": f"{points} points"}]}).retention
    assert (rule.days, rule.points, rule.kept) == (365, points, f"1 y, then {points} points")
    assert load({"retention": masked(Settings(retention=(rule,)))["retention"]}).retention == (rule,)
    (deleted,) = load({"retention": [OLD_SCALARS]}).retention
    assert (deleted.points, deleted.kept) == (None, "1 y")


def test_a_rule_asks_for_no_fewer_points_than_a_series_can_be_thinned_to() -> None:
    assert FEWEST_POINTS == thinning.FEWEST


def test_nothing_goes_unless_a_rule_says_so() -> None:
    assert Settings().retention == ()
    assert rule_for((), "lab", "logs") is None


def test_the_first_rule_that_fits_counts() -> None:
    of_all = RetentionRule(("logs", "images"), "1 y")
    release = RetentionRule(("logs",), "for ever", "lab/release")
    scratch = RetentionRule(("logs",), "7 d", "*/scratch")
    rules = (release, scratch, of_all)
    assert rule_for(rules, "lab/release", "logs") is None
    assert rule_for(rules, "lab/release/one", "logs") is None
    assert rule_for(rules, "lab/release", "images") == of_all
    assert rule_for(rules, "lab/released", "logs") == of_all
    assert rule_for(rules, "lab/scratch/a/b", "logs") == scratch
    assert rule_for(rules, "scratch", "logs") == of_all
    assert rule_for(rules, "a/b/scratch", "logs") == of_all
    assert rule_for(rules, None, "logs") == of_all
    assert rule_for((scratch,), None, "logs") is None
    assert rule_for(rules, "lab", "scalars") is None


@pytest.mark.parametrize("project", ["a[bc]", "a?c", "[!a]", "{a,b}", "a.c", "a\\c", "^a$", "*", "a*"])
def test_a_name_with_the_characters_of_other_patterns_stands_for_itself(project: str) -> None:
    assert RetentionRule(("logs",), "1 d", project).fits(project, "logs")
    assert RetentionRule(("logs",), "1 d", project).fits("abc", "logs") == (project in ("*", "a*"))


@pytest.mark.test
@examples(300)
@example("ab", "a*b*b")
@example("a", "a*a")
@given(st.text("ab/", min_size=1, max_size=9), st.text("ab*/", min_size=1, max_size=9))
def test_patterns_mean_what_the_expression_means(project: str, pattern: str) -> None:
    expected = re.fullmatch("[^/]*".join(map(re.escape, pattern.split("*"))) + "(/.*)?", project, re.DOTALL)
    assert RetentionRule(("logs",), "1 d", pattern).fits(project, "logs") == (expected is not None)


def test_no_pattern_takes_long() -> None:
    """An expression made of it would look back 10^100 times."""
    assert not RetentionRule(("logs",), "1 d", "a*" * 400 + "b").fits("a" * 10_000 + "c", "logs")


def _shadowed(*rules: tuple[str, str]) -> list[str]:
    """What is said of rules for these types (with blanks between them) and projects."""
    return shadowed([RetentionRule(tuple(types.split()), "90 d", project) for types, project in rules])


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (("images", ""), ("images", "lab")),
        (("images plots", ""), ("plots", "*/scratch")),
        (("images", "lab"), ("images", "lab/vision")),
        (("images", "lab"), ("images", "lab/*")),
        (("images", "*/scratch"), ("images", "*/scratch")),
    ],
)
def test_a_rule_after_one_that_fits_all_of_it_never_counts(earlier: tuple[str, str], later: tuple[str, str]) -> None:
    said = "retention: rule 3 never counts: rule 2 comes first, and fits all that it fits"
    assert _shadowed(("logs", "lab"), earlier, later) == [said]
    assert _shadowed(("logs", "lab"), later, earlier) == ([said] if earlier == later else [])


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (("images", ""), ("images plots", "lab")),
        (("images", "lab"), ("images", "")),
        (("images", "lab"), ("images", "laboratory")),
        (("images", "lab/vision"), ("images", "lab")),
        (("images", "lab"), ("images", "l*")),
    ],
)
def test_a_rule_that_may_count_is_not_warned_of(earlier: tuple[str, str], later: tuple[str, str]) -> None:
    assert _shadowed(earlier, later) == []

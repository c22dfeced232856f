"""The alerts for Prometheus: numbers that the server tells, in expressions that can be read, in plain words."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml  # type: ignore[import-untyped]

from tests.certificates import lasting_pair
from tests.deployment.compose import ROOT
from tests.harness import ADMIN_KEY, ADMIN_SECRET, ANYBODY, served

FILE = ROOT / "deploy" / "prometheus" / "alerts.yml"
#: Told by Prometheus itself, and by servers on Elasticsearch (`tests/stores/events/elasticsearch/test_store.py`).
ELSEWHERE = {"up", "apiserver_events_owners_to_compact"}
FUNCTIONS = {"changes", "deriv", "histogram_quantile", "increase", "max", "predict_linear", "rate", "sum", "time"}
WORDS = {"and", "unless", "by"}
LABELS = {"code", "endpoint", "instance", "job", "le", "status"}
_TOKENS = re.compile(
    r'(?P<text>"[^"]*")|(?P<range>\[\d+[smhd]\])|(?P<number>\d+(\.\d+)?(e\d+)?)'
    r"|(?P<name>[a-zA-Z_]\w*)|(?P<operator>==|!=|=~|!~|[<>]=?|[-+*/=,(){}])"
)


def rules() -> list[dict[str, Any]]:
    """All alerts."""
    [group] = yaml.safe_load(FILE.read_text("utf-8"))["groups"]
    return list(group["rules"])


def tokens(expression: str) -> Iterator[tuple[str, str]]:
    """Kind and text of each token of an expression; AssertionError if something is none."""
    at = 0
    while at < len(expression):
        if expression[at].isspace():
            at += 1
            continue
        found = _TOKENS.match(expression, at)
        assert found is not None, f"what is {expression[at:]!r}?"
        yield str(found.lastgroup), found[0]
        at = found.end()


EACH = pytest.mark.parametrize("rule", rules(), ids=lambda rule: str(rule["alert"]))


@EACH
def test_it_says_in_plain_words_what_is_wrong(rule: dict[str, Any]) -> None:
    assert rule.keys() - {"for"} == {"alert", "expr", "labels", "annotations"}
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert rule["annotations"].keys() == {"summary", "description"}
    for text in rule["annotations"].values():
        assert text.endswith(".")
        assert set(re.findall(r"\$labels\.(\w+)", text)) <= LABELS


@EACH
def test_its_expression_can_be_read(rule: dict[str, Any]) -> None:
    opened: list[str] = []
    before = ""
    for kind, token in tokens(rule["expr"]):
        if kind == "range":
            assert before in ("name", "}"), "only numbers of the server have a range"
        elif token in "({":
            opened.append(token)
        elif token in ")}":
            assert opened.pop() + token in ("()", "{}")
        before = token if kind == "operator" else kind
    assert not opened
    assert before != "operator"


def test_names_are_numbers_that_the_server_tells(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        **lasting_pair().settings,
        "backup_to": str(tmp_path / "backups"),
        "backup_every": 24,
        "retention": '[{"types": ["logs"], "keep": "90 d"}]',
        "retention_every": 24,
        "quotas": '[{"of": "task", "series": 1000}]',
    }
    with served(tmp_path / "data", **settings) as server:
        server.call("debug.ping")  # to be counted
        server.call("tasks.create", {"name": "a task", "type": "training"})
        answer = httpx.get(f"{server.api_url}/metrics", auth=(ADMIN_KEY, ADMIN_SECRET), verify=ANYBODY)
    told = {re.split(r"[{ ]", line)[0] for line in answer.text.splitlines() if not line.startswith("#")}
    for rule in rules():
        named = {token for kind, token in tokens(rule["expr"]) if kind == "name"} - FUNCTIONS - WORDS - LABELS
        assert named
        assert named <= told | ELSEWHERE, rule["alert"]


def test_each_has_a_name_of_its_own() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)


def test_prometheus_takes_them() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool")
    subprocess.run([promtool, "check", "rules", str(FILE)], check=True)

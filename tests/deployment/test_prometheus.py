"""The alerts for Prometheus: in plain words, on numbers that the server tells, and Prometheus itself tries them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.certificates import lasting_pair
from tests.deployment.compose import ROOT
from tests.harness import ADMIN_KEY, ADMIN_SECRET, ANYBODY, served

FILE = ROOT / "deploy" / "prometheus" / "alerts.yml"
PROMTOOL = shutil.which("promtool", path=os.pathsep.join([os.environ["PATH"], str(Path.home() / "go" / "bin")]))
#: Told by Prometheus itself, and by servers on Elasticsearch (`tests/stores/events/elasticsearch/test_store.py`).
ELSEWHERE = {"up", "apiserver_events_owners_to_compact"}
LABELS = {"endpoint", "instance"}

needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="no promtool, which .ci/run makes")


@dataclass(frozen=True)
class Case:
    """When an alert fires, and when it does not.

    Numbers are those of each minute: `5+2x3` is 5, 7, 9 and 11, and `5x3` is 5 four times.
    """

    alert: str
    minute: int
    fires: dict[str, str]
    """By name and labels beside `instance`, numbers with which it fires in that minute."""
    quiet: list[dict[str, str]]
    """Others, with each of which it does not."""
    summary: str
    labels: dict[str, str] = field(default_factory=lambda: {"instance": "here"})


def requests(**by_code: str) -> dict[str, str]:
    """The series of requests that were answered with some codes: c500="0+1x9"."""
    name = 'apiserver_requests_total{endpoint="tasks.create",code="%s"}'
    return {name % code.removeprefix("c"): numbers for code, numbers in by_code.items()}


def seconds(**at_most: str) -> dict[str, str]:
    """The series of the histogram of `events.add_batch`: batches that took at most so long."""
    name = 'apiserver_request_seconds_bucket{endpoint="events.add_batch",le="%s"}'
    bounds = {"one": "1.0", "two_and_a_half": "2.5", "five": "5.0", "any": "+Inf"}
    return {name % bounds[bound]: numbers for bound, numbers in at_most.items()}


def running(tasks: str, added: str) -> dict[str, str]:
    return {'apiserver_tasks{status="in_progress"}': tasks, 'apiserver_events_added_total{type="scalars"}': added}


UP = 'up{job="events-apiserver"}'
START = "apiserver_start_time_seconds"
#: Bytes that a disk of 50 GB loses each minute, and is full after four days, or not.
FALLING, SLOWLY = "50000000000-10000000x600", "50000000000-1000000x600"

CASES = [
    Case(
        "ServerDoesNotAnswer",
        *(5, {UP: "1 0x5"}, [{UP: "1x3 0x1"}, {'up{job="another"}': "0x5"}]),
        "here does not answer.",
        {"instance": "here", "job": "events-apiserver"},
    ),
    Case(
        "ServerStartsAgainAndAgain",
        *(
            9,
            {"apiserver_start_time_seconds": "1x1 2x1 3x1 4x1 5x1"},
            [{"apiserver_start_time_seconds": "1x3 2 3 4x3"}],
        ),
        "here has started 4 times in half an hour.",
    ),
    Case(
        "StoreIsDown",
        *(15, requests(c503="0+1x15"), [requests(c503="7x15", c429="0+1x15"), requests(c503="0x11 9x3")]),
        "here answers 503.",
    ),
    Case(
        "ServerHasFaults",
        *(15, requests(c500="3x9 4x5"), [requests(c500="3x15", c503="0+1x15")]),
        "tasks.create of here has answered 500.",
        {"instance": "here", "endpoint": "tasks.create"},
    ),
    Case(  # the first one, before which Prometheus knows no number of them
        "ServerHasFaults",
        *(15, {START: "0x15", **requests(c500="_x9 1x5")}, [{START: "0x15", **requests(c500="_ 1x15")}]),
        "tasks.create of here has answered 500.",
        {"instance": "here", "endpoint": "tasks.create"},
    ),
    Case(  # a first one after Prometheus came back, while those from before it was away are told no more
        "ServerHasFaults",
        *(17, {START: "0 _x4 0x12", **requests(c500="_x12 1x5")}),
        [
            {START: "0 _x12 0x4", **requests(c500="3 _x12 3x4")},
            {START: "_x13 0x4", **requests(c500="_x13 3x4")},
        ],
        "tasks.create of here has answered 500.",
        {"instance": "here", "endpoint": "tasks.create"},
    ),
    Case(  # a first one of a server that started while Prometheus was away
        "ServerHasFaults",
        *(17, {START: "0 _x12 700x4", **requests(c500="_x13 1x4")}),
        [{START: "0 _x12 300x4", **requests(c500="_x13 1x4")}],
        "tasks.create of here has answered 500.",
        {"instance": "here", "endpoint": "tasks.create"},
    ),
    Case(
        "ClientsAreToldToWait",
        *(40, requests(c200="0+90x40", c429="0+10x40")),
        [requests(c200="0+96x40", c429="0+4x40"), requests(c200="0+90x40", c429="0x30 0+10x9")],
        "here answers 429 to 10% of the requests.",
    ),
    Case(
        "EventsAreTakenSlowly",
        *(40, seconds(one="0x40", two_and_a_half="0x40", five="0+100x40", any="0+100x40")),
        [seconds(one="0+99x40", two_and_a_half="0+100x40", five="0+100x40", any="0+100x40")],
        "One batch of a hundred takes here 4.975s or longer.",
    ),
    Case(
        "EventLoopIsHeld",
        *(40, {"apiserver_loop_held_seconds_total": "0+12x40"}, [{"apiserver_loop_held_seconds_total": "0+3x40"}]),
        "here answers nobody for 20% of the time.",
    ),
    Case(
        "ConnectionsRunOut",
        *(10, {"apiserver_connections": "95x10", "apiserver_connections_limit": "100x10"}),
        [{"apiserver_connections": "90x10", "apiserver_connections_limit": "100x10"}],
        "here has 95% of the connections that it can take.",
    ),
    Case(
        "DiskIsFull",
        *(5, {"apiserver_disk_free_bytes": "536870912x5"}, [{"apiserver_disk_free_bytes": "1000000000x5"}]),
        "The disk of here has 512MiB left.",
    ),
    Case(
        "DiskWillBeFull",
        *(600, {"apiserver_disk_free_bytes": FALLING}),
        [{"apiserver_disk_free_bytes": numbers} for numbers in (SLOWLY, "900000000000-200000000x600")],
        "The disk of here will be full within four days.",
    ),
    Case(
        "MergingFails",
        *(10, {"apiserver_events_merging_works": "0x10"}, [{"apiserver_events_merging_works": "1x8 0x1"}]),
        "here cannot merge events.",
    ),
    Case(
        "MergingFallsBehind",
        *(
            15,
            {"apiserver_events_unmerged_bytes": "104857600x15"},
            [{"apiserver_events_unmerged_bytes": "99000000x15"}],
        ),
        "here has 100MiB of events to merge.",
    ),
    Case(
        "CompactionFallsBehind",
        *(600, {"apiserver_events_owners_to_compact": "1001+1x600"}),
        [{"apiserver_events_owners_to_compact": numbers} for numbers in ("5000-1x600", "5000x600", "0+1x600")],
        "here has small blocks of 1601 tasks to put together, and ever more.",
    ),
    Case(
        "RunsAreSilent",
        *(200, running("3x200", "500x200"), [running("3x200", "500+1x200"), running("0x200", "500x200")]),
        "3 tasks are running, and none has reported anything for two hours.",
        {},
    ),
    Case(
        "CertificateEndsSoon",
        *(
            0,
            {"apiserver_tls_certificate_end_seconds": "90061"},
            [{"apiserver_tls_certificate_end_seconds": "2000000"}],
        ),
        "The certificate of here ends in 1d 1h 1m 1s.",
    ),
    Case(
        "CertificateIsNotTaken",
        *(10, {"apiserver_tls_certificate_outdated": "1x10"}, [{"apiserver_tls_certificate_outdated": "0x10"}]),
        "here cannot use its new certificate, and keeps the one before.",
    ),
    Case(
        "BackupFails",
        *(20, {"apiserver_backup_well": "0x20"}, [{"apiserver_backup_well": "0x10 1 0x8"}]),
        "The newest backup of here failed, or is late.",
    ),
    Case(
        "BackupsAreDamaged",
        *(0, {"apiserver_backup_check_findings": "2"}, [{"apiserver_backup_check_findings": "0"}]),
        "2 pieces or manifests of backups of here are damaged or missing.",
    ),
    Case(
        "BackupsAreNotChecked",
        *(20, {"apiserver_backup_check_well": "0x20"}, [{"apiserver_backup_check_well": "1x20"}]),
        "here does not read its backups again: that failed, or is late.",
    ),
    Case(
        "RetentionFails",
        *(20, {"apiserver_retention_well": "0x20"}, [{"apiserver_retention_well": "1x20"}]),
        "here does not delete old events: that failed, or is late.",
    ),
    Case(
        "DataAreDamaged",
        *(0, {"apiserver_scrub_findings": "3"}, [{"apiserver_scrub_findings": "0"}]),
        "here knows of 3 damaged places in its data.",
    ),
    Case(
        "AuditLogLosesLines",
        *(30, {"apiserver_audit_lost": "5x24 17x5"}, [{"apiserver_audit_lost": "5x10 17x20"}]),
        "The audit log of here has lost about 13 lines.",  # a rate of nine minutes, times ten
    ),
    Case(
        "AuditLogIsNotWritten",
        *(10, {"apiserver_audit_waiting": "1001x10"}, [{"apiserver_audit_waiting": "1000x10"}]),
        "1001 lines of the audit log of here wait to be written.",
    ),
    Case(
        "QuotasAreNear",
        *(20, {"apiserver_quotas_near": "2x20"}, [{"apiserver_quotas_near": "0x20"}]),
        "2 tasks, projects, users or companies have 80 % of a quota on here.",
    ),
]


def rules() -> list[dict[str, Any]]:
    """All alerts."""
    [group] = yaml.safe_load(FILE.read_text("utf-8"))["groups"]
    return list(group["rules"])


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: str(rule["alert"]))
def test_it_says_in_plain_words_what_is_wrong(rule: dict[str, Any]) -> None:
    assert rule.keys() - {"for"} == {"alert", "expr", "labels", "annotations"}
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert rule["annotations"].keys() == {"summary", "description"}
    for text in rule["annotations"].values():
        assert text.endswith(".")
        assert set(re.findall(r"\$labels\.(\w+)", text)) <= LABELS


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
        named = set(re.findall(r"\b(?:up|apiserver_\w+)\b", rule["expr"]))
        assert named
        assert named <= told | ELSEWHERE, rule["alert"]


def test_each_has_a_name_of_its_own_and_is_tried() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    assert {case.alert for case in CASES} == set(names)


@needs_promtool
def test_prometheus_takes_them() -> None:
    promtool("check", "rules", "--lint-fatal", FILE)


@needs_promtool
def test_each_fires_when_it_should_and_not_otherwise(tmp_path: Path) -> None:
    by_name = {rule["alert"]: rule for rule in rules()}
    tests = []
    for case in CASES:
        rule = by_name[case.alert]
        fires = {
            "exp_labels": {**case.labels, **rule["labels"]},
            "exp_annotations": {"summary": case.summary, "description": rule["annotations"]["description"]},
        }
        tests += [tried(case, case.fires, [fires]), *(tried(case, numbers, []) for numbers in case.quiet)]
    file = tmp_path / "tests.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(FILE)], "evaluation_interval": "1m", "tests": tests}))
    promtool("test", "rules", file)


def tried(case: Case, numbers: dict[str, str], alerts: list[dict[str, Any]]) -> dict[str, Any]:
    """A test of one alert, as promtool reads it: with these numbers, these alerts are expected."""
    series = [{"series": of_here(name), "values": values} for name, values in numbers.items()]
    expected = {"eval_time": f"{case.minute}m", "alertname": case.alert, "exp_alerts": alerts}
    return {"name": case.alert, "interval": "1m", "input_series": series, "alert_rule_test": [expected]}


def of_here(series: str) -> str:
    name, _, labels = series.rstrip("}").partition("{")
    return f'{name}{{{labels}{"," * bool(labels)}instance="here"}}'


def promtool(*command: str | Path) -> None:
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

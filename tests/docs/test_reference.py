"""Each endpoint has an example, and the pages that are made of the code say what it says."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from apiserver.cli import command_line
from apiserver.common import resources
from apiserver.rpc.schema import EndpointTable, load_schemas
from docs.site.errors import SiteError
from docs.site.examples import SERVICES, Call, calls_of
from docs.site.reference import command_page, event_page, field_rows, pretty, service_page, shell, shortened
from docs.site.running import answers, body
from tests.harness import Served


@pytest.fixture(scope="module")
def table() -> EndpointTable:
    schemas = resources.path("schemas")
    return load_schemas(schemas, schemas / resources.PARSED)


def test_every_endpoint_has_an_example(table: EndpointTable) -> None:
    shown = {call.endpoint for service in SERVICES for call in calls_of(service) if call.service == service}
    assert shown == {name for name, versions in table.items() if not versions[-1].internal}


def test_every_example_is_answered_and_shown(server: Served, table: EndpointTable) -> None:
    with server.client() as client:
        for service in SERVICES:
            done = list(answers(client, calls_of(service)))
            page = service_page(service, "Of it.", table, done)
            assert page.count("\n```sh\n") == sum(answered.call.service == service for answered in done)
            public = [name for name, versions in table.items() if not versions[-1].internal]
            assert all(f"\n## {name}\n" in page for name in public if name.startswith(f"{service}."))


def test_an_example_that_is_refused_stops_the_building(server: Served) -> None:
    with server.client() as client, pytest.raises(SiteError, match=r"tasks\.get_by_id is refused: .*Invalid task id"):
        list(answers(client, [Call("tasks.get_by_id", {"task": "nobody"})]))


@pytest.mark.parametrize(
    "call",
    [
        Call("tasks.edit", {"task": "$TASK", "comment": 'it\'s "here"', "iteration": "$NOW"}),
        Call("tasks.edit", {"task": "$TASK", "comment": "x" * 200, "tags": ["$TASK"]}),
        Call("events.add_batch", ({"task": "$TASK", "msg": "a\nb"}, {"task": "$TASK", "timestamp": "$NOW"})),
        Call("debug.ping"),
    ],
    ids=["quotes", "many lines", "batch", "nothing"],
)
def test_what_is_shown_sends_the_same_body(call: Call) -> None:
    """A shell with a curl that prints what it would send."""
    variables = {"TASK": "0123", "NOW": 5}
    script = 'curl() { printf "%s\\n" "$@"; }\n' + "".join(f"{name}={value}\n" for name, value in variables.items())
    environment = {"KEY": "key", "SECRET": "secret", "S": "http://server"}
    done = subprocess.run(
        ["sh", "-c", script + shell(call)], env=environment, capture_output=True, text=True, check=True
    )
    head, _, sent = done.stdout.partition(f"http://server/{call.endpoint}\n")
    assert head == "-u\nkey:secret\n"
    flag, _, text = sent.partition("\n")
    assert flag == ("--data-binary" if isinstance(call.request, tuple) else "-d" if call.request else "")
    lines = text.splitlines() if isinstance(call.request, tuple) else [text] if text else []
    assert [json.loads(line) for line in lines] == _lines(body(call, variables))


def _lines(sent: bytes) -> list[Any]:
    return [json.loads(line) for line in sent.splitlines() if line != b"{}"]


def test_fields_are_shown_with_those_inside_of_them() -> None:
    schema = {
        "required": ["a"],
        "properties": {
            "a": {"type": "integer", "minimum": 0, "maximum": 9, "default": 3, "description": "One | two"},
            "b": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "string", "enum": ["x"]}}}},
        },
    }
    assert list(field_rows(schema)) == [
        ("**`a`**", "integer, 0 to 9", "One \\| two. Default: `3`"),
        ("`b`", "list of object", ""),
        ("`b[].c`", "string", "One of `x`"),
    ]


def test_answers_are_shortened_and_fit() -> None:
    answer = {"ids": [1, 2, 3, 4], "text": "x" * 150, "none": None}
    shown = shortened(answer)
    assert shown == {"ids": [1, 2, 3, "…"], "text": "x" * 100 + "…", "none": None}
    assert pretty(shown).startswith('{\n  "ids": [1, 2, 3, "…"],\n  "text": "xxx')
    assert json.loads(pretty(shown)) == shown


def test_every_event_field_and_every_command_is_shown(table: EndpointTable) -> None:
    fields = [name for kind in table["events.add"][-1].request["anyOf"] for name in kind["properties"]]
    text = event_page(table)
    assert len(fields) > 30
    assert all(text.count(f"`{name}`") >= fields.count(name) for name in fields)
    commands = ("serve", "config", "migrate", "copy", "import clearml", "import tensorboard", "user add")
    text = command_page(command_line())
    assert all(f"## apiserver {name}\n```text\nusage: apiserver {name}" in text for name in commands)

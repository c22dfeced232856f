"""The pages of the reference that are made of the code: endpoints and event fields of the schema, the command line."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from apiserver.rpc.schema import EndpointTable, EndpointVersion
from apiserver.rpc.schema_bounds import Schema
from docs.site.examples import Call
from docs.site.running import Answered, given

#: Levels of objects in objects that a table of fields shows.
_LEVELS = 3
_LONGEST_LINE = 80
#: How much of a list, an object and a text the answers of examples show.
_MOST_ITEMS, _MOST_NAMES, _LONGEST_TEXT = 3, 24, 100


# --- endpoints --------------------------------------------------------------------------------------


def service_page(service: str, description: str, table: EndpointTable, answers: Sequence[Answered]) -> str:
    """The page of a service: each endpoint with its fields, an example, and what was answered to it."""
    sections = [
        _endpoint(versions, _examples(name, answers))
        for name, versions in table.items()
        if name.startswith(f"{service}.") and not versions[-1].internal
    ]
    head = f"# {service}\n{description} The [introduction](../index.md) says how endpoints are called.\n\n"
    return head + "\n".join(sections)


def _endpoint(versions: Sequence[EndpointVersion], examples: str) -> str:
    newest = versions[-1]
    named = " and ".join(str(endpoint.version) for endpoint in versions[:-1])
    older = f" Version {newest.version}; {named} differ, as `/openapi.json` says." if named else ""
    kind = "Changes nothing." if newest.reads else "Changes something."
    request = newest.item or newest.request
    lines = "JSON lines, each with these fields" if newest.item else "Request"
    return "\n".join(
        [
            f"## {newest.name}",
            f"{newest.description} {kind} From API version {versions[0].since}.{older}\n",
            examples,
            "The fields are those of [events](../events.md).\n" if "anyOf" in request else _fields(lines, request),
            _fields("Answer", newest.response),
        ]
    )


def _fields(title: str, schema: Schema) -> str:
    """A table of an object's fields; nothing when it has none."""
    rows = list(field_rows(schema))
    if not rows:
        return ""
    head = f"| {title} | type | meaning |\n|---|---|---|\n"
    return head + "".join(f"| {name} | {kind} | {meaning} |\n" for name, kind, meaning in rows)


def field_rows(schema: Schema, prefix: str = "", level: int = 1) -> Iterator[tuple[str, str, str]]:
    """Name, type and meaning of each field of an object and of the objects in it; what must be given is bold."""
    for name, field in schema.get("properties", {}).items():
        shown = f"`{prefix}{name}`"
        must = name in schema.get("required", ())
        yield f"**{shown}**" if must else shown, type_of(field), _meaning(field)
        inner, suffix = (field["items"], "[]") if isinstance(field.get("items"), dict) else (field, "")
        if level < _LEVELS:
            yield from field_rows(inner, f"{prefix}{name}{suffix}.", level + 1)


def type_of(field: Schema) -> str:
    """A field's type, with its bounds."""
    kind = field.get("type", "any")
    if kind == "array":
        return f"list of {type_of(field['items'])}" if isinstance(field.get("items"), dict) else "list"
    least, most = field.get("minimum"), field.get("maximum")
    if least is not None and most is not None and most < 2**53:
        return f"{kind}, {least} to {most}"
    return f"{kind}, at least {least}" if least is not None and most is None else str(kind)


def _meaning(field: Schema) -> str:
    parts = [str(field.get("description", "")).replace("|", "\\|").replace("\n", " ")]
    values = field.get("enum") or (field.get("items") or {}).get("enum")
    if values:
        parts.append("One of " + ", ".join(f"`{value}`" for value in values))
    if "const" in field:
        parts.append(f"Always `{field['const']}`")
    if "default" in field:
        parts.append(f"Default: `{json.dumps(field['default'])}`")
    return ". ".join(part for part in parts if part)


# --- examples ---------------------------------------------------------------------------------------


def _examples(endpoint: str, answers: Sequence[Answered]) -> str:
    """The calls of an endpoint, with those that other services had to do for it, and the last one's answer."""
    before: list[Call] = []
    shown: list[str] = []
    kept = dict.fromkeys(given(), "")
    for answered in answers:
        call = answered.call
        if call.endpoint == endpoint:
            shown.append(_example([*before, call], kept, answered.data))
        before = [] if call.service == endpoint.partition(".")[0] else [*before, call]
        kept |= dict.fromkeys(call.keep, call.endpoint)
    return "\n".join(shown)


def _example(calls: Sequence[Call], kept: Mapping[str, str], answer: Any) -> str:
    own = {name for call in calls for name in call.keep}
    used = {name: kept[name] for call in calls for name in _variables(call.request) if name not in own and kept[name]}
    sources = ", ".join(f"`${name}` from `{endpoint}`" for name, endpoint in used.items())
    is_text = isinstance(answer, str)
    body = answer if is_text else pretty(shortened(answer))
    return "\n".join(
        [
            *([f"With {sources}:\n"] if sources else []),
            "```sh",
            *map(shell, calls),
            "```\n",
            f"```{'text' if is_text else 'json'}",
            body.strip("\ufeff\n"),
            "```\n",
        ]
    )


def shell(call: Call) -> str:
    """A call as a line for a shell, and where the variables that it keeps come from."""
    requests = call.request if isinstance(call.request, tuple) else (call.request,)
    is_batch = isinstance(call.request, tuple)
    bodies = [_quoted(request, is_batch) for request in requests if request]
    flag = "--data-binary" if is_batch else "-d"
    data = f" {flag} '" + "\n".join(bodies) + "'" if bodies else ""
    notes = "".join(f"  # {name}: {path} of the answer" for name, path in call.keep.items())
    return f"curl -u $KEY:$SECRET $S/{call.endpoint}{data}{notes}"


def _quoted(request: Any, one_line: bool) -> str:
    """JSON between single quotes of a shell; variables stand outside of these."""
    text = (json.dumps(request, ensure_ascii=False) if one_line else pretty(request)).replace("'", "'\\''")
    for name in _variables(request):
        is_number = name in given()
        text = text.replace(f'"${name}"', f"'${name}'" if is_number else f"\"'${name}'\"")
    return text


def _variables(value: Any) -> Iterator[str]:
    """The variables in a request, each time that one is there."""
    if isinstance(value, str) and value.startswith("$"):
        yield value[1:]
    elif isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _variables(inner)


def pretty(value: Any, indent: str = "") -> str:
    """JSON in which what fits into a line is in one line."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + len(indent) <= _LONGEST_LINE or not isinstance(value, dict | list):
        return line
    inner = f"{indent}  "
    if isinstance(value, list):
        return f"[\n{inner}" + f",\n{inner}".join(pretty(one, inner) for one in value) + f"\n{indent}]"
    fields = (f"{json.dumps(name, ensure_ascii=False)}: {pretty(one, inner)}" for name, one in value.items())
    return f"{{\n{inner}" + f",\n{inner}".join(fields) + f"\n{indent}}}"


def shortened(value: Any) -> Any:
    """An answer, with `…` for what is too much to be read."""
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return f"{value[:_LONGEST_TEXT]}…"
    if isinstance(value, list):
        return [shortened(one) for one in value[:_MOST_ITEMS]] + (["…"] if len(value) > _MOST_ITEMS else [])
    if isinstance(value, dict):
        some = {name: shortened(value[name]) for name in list(value)[:_MOST_NAMES]}
        return some | ({"…": "…"} if len(value) > _MOST_NAMES else {})
    return value


# --- events -----------------------------------------------------------------------------------------


def event_page(table: EndpointTable) -> str:
    """The fields of each type of event."""
    text = (
        "# Event fields\n"
        "What `events.add` and each line of `events.add_batch` may hold, by `type`. Names in bold must be there. "
        "Other fields are kept and answered, too, except with scalars, within the limits that "
        "[compatibility](compatibility.md#limits) names.\n"
    )
    for kind in table["events.add"][-1].request["anyOf"]:
        head = kind["properties"]["type"]
        text += f"\n## {head['const']}\n{head['description']}.\n\n{_fields('field', kind)}"
    return text


# --- the command line -------------------------------------------------------------------------------


def command_page(parser: argparse.ArgumentParser) -> str:
    """Each command with its help."""
    text = (
        "# Command line\n"
        "A flag wins over the environment, and that over the file of settings; [settings](settings.md) says more. "
        "Exit codes: 0 done, 1 could not be done, 2 wrong usage or settings.\n"
    )
    for command in _commands(parser):
        command.formatter_class = partial(argparse.HelpFormatter, width=_LONGEST_LINE)
        text += f"\n## {command.prog}\n```text\n{command.format_help()}```\n"
    return text


def _commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The commands that can be run: of a parser, and of its commands."""
    found = [action.choices.values() for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not found:
        yield parser
    for command in chain.from_iterable(found):
        yield from _commands(command)

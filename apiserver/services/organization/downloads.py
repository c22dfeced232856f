"""Tables of tasks or models as CSV files. One call prepares the query, the next one downloads the file.

The prepared query is stored for some minutes as a document, because another server may answer the second call. The file
is sent while it is read, a page at a time.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import AsyncGenerator, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import orjson

from apiserver.common import answers
from apiserver.common.errors import Refusal, Why, validation_error
from apiserver.rpc.call import Streamed
from apiserver.services.backend import Call, documents, endpoint, visible
from apiserver.services.documents.keys import unescape
from apiserver.services.lists.expiring_ids import new_id, oldest_id
from apiserver.services.models import read as models
from apiserver.services.projects.tree import PROJECTS
from apiserver.services.tasks import read as tasks
from apiserver.stores.documents.query import AllOf, AtLeast, Less

DOWNLOADS = "downloads"
#: How long a prepared query is valid.
KEPT_SECONDS = 300
_READ = {"task": tasks.get_all_ex, "model": models.get_all_ex}
_PAGING = ("page", "page_size", "size", "scroll_id", "refresh_scroll")
#: The characters with which spreadsheets begin a formula. Such a text gets a quote in front.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_BYTE_ORDER_MARK = "\ufeff"


@endpoint("organization.prepare_download_for_get_all", "2.26")
async def prepare(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    names = [_title(column) for column in request["field_mappings"]]
    if len(set(names)) < len(names):
        raise validation_error("two columns have the same name", field="field_mappings")
    await _page(call, request, 0, 1)  # a wrong query gets its error now
    await documents(call).delete(DOWNLOADS, {"id": Less(oldest_id(KEPT_SECONDS))})
    prepared = {"id": new_id(), "request": orjson.dumps(request).decode()}
    await documents(call).insert(DOWNLOADS, prepared)
    return {"prepare_id": prepared["id"]}


@endpoint("organization.download_for_get_all", "2.26")
async def download(call: Call, request: dict[str, Any]) -> Streamed:
    prepare_id = request["prepare_id"]
    wanted = AllOf([{"id": prepare_id}, {"id": AtLeast(oldest_id(KEPT_SECONDS))}])
    prepared = await documents(call).find_one(DOWNLOADS, wanted)
    if prepared is None:
        raise Refusal(Why.NO_DOWNLOAD, f"The download is unknown or has expired: prepare_id={prepare_id[:100]}")
    query = orjson.loads(prepared["request"])
    call.response_headers.append(("Content-Disposition", f"attachment; filename={await _file_name(call, query)}"))
    return Streamed(_table(call, query), "text/csv; charset=utf-8")


async def _table(call: Call, query: dict[str, Any]) -> AsyncGenerator[bytes, None]:
    columns = query["field_mappings"]
    paths = [[unescape(name) for name in column["field"].split(".")] for column in columns]
    shown = [_shown_values(column) for column in columns]
    made = [_BYTE_ORDER_MARK.encode() + _line([_title(column) for column in columns])]
    largest = call.backend.bounds.downloaded
    number, size = 0, largest
    while True:
        read = partial(_page, call, query, number, size)
        try:
            # `lambda _: 0`: reading documents has counted them already.
            found = await answers.held_page(read, lambda _: 0, first=number == 0)
        except answers.AnswerTooLarge:
            if size == 1:
                raise
            number, size = 2 * number, size // 2
            continue
        made += [_line([_cell(one, *column) for column in zip(paths, shown, strict=True)]) for one in found]
        if not made:
            return
        made = [b"".join(made)]
        del found  # neither it nor what is made of it is held here while it is sent
        answers.made(len(made[0]))
        yield made.pop()
        number += 1
        if size < largest and number % 2 == 0:
            number, size = number // 2, 2 * size


async def _page(call: Call, query: dict[str, Any], number: int, size: int) -> list[dict[str, Any]]:
    kind = query["entity_type"]
    request = {name: value for name, value in query.items() if name not in _PAGING}
    request["only_fields"] = [column["field"] for column in query["field_mappings"]]
    answer = await _READ[kind](call, {**request, "page": number, "page_size": size})
    found: list[dict[str, Any]] = answer[f"{kind}s"]
    return found


def _shown_values(column: dict[str, Any]) -> dict[Any, Any]:
    """By value, what a column shows instead. If a value is listed twice, the first entry counts."""
    items = reversed(column.get("values") or [])
    return {item["key"]: item.get("value") for item in items if isinstance(item.get("key"), Hashable)}


def _cell(document: dict[str, Any], path: Sequence[str], shown: Mapping[Any, Any]) -> Any:
    """What a column shows of a document: a number or a text; of a list its items; of an object its id."""
    value: Any = document
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, dict):
        value = value.get("id")
    if isinstance(value, Hashable):
        value = shown.get(value, value)
    if isinstance(value, list):
        value = ", ".join(str(item) for item in value)
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None else value


def _line(cells: list[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue().encode()


def _title(column: dict[str, Any]) -> str:
    title: str = column.get("name") or column["field"]
    return title


async def _file_name(call: Call, query: dict[str, Any]) -> str:
    """The name of the file. It begins with the project's name if the query is about one project."""
    projects = query.get("project")
    ids = projects if isinstance(projects, list) else [projects]
    project = await visible(call).find_one(PROJECTS, {"id": ids[0]}, projection=["basename"]) if len(ids) == 1 else None
    name = re.sub(r"[^0-9A-Za-z_.-]", "_", project["basename"])[:60] + "-" if project else ""
    return f"{name}{query['entity_type']}s.csv"

"""What a ClearML server leaves in its databases, as its documents and events lie there, written by hand."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from pymongo import MongoClient

from tests.engines import elasticsearch, mongodb

TIME = datetime(2024, 5, 6, 7, 8, 9, 123000)
TIME_TEXT = "2024-05-06T07:08:09.123000+00:00"
WRITTEN = "2024-05-06T07:08:10.500000"
COMPANY = "c0ffee92a3b039400cbafc60a7a5b1e5"
ANN, ANNS_KEY, ANNS_SECRET = "ann-id", "ANNSKEY0123456789", "anns secret, kept in clear"
TASK, MODEL = "task-one", "model-one"
T0 = 1_700_000_000_000

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ClearmlServer:
    """The engines of one, without the server. `write` and `index` add to what is there."""

    mongodb: str
    elasticsearch: str

    @property
    def arguments(self) -> list[str]:
        """How the command is told where it is."""
        return ["--mongodb", self.mongodb, "--elasticsearch", self.elasticsearch]

    def write(self, kind: str, *documents: Json, database: str = "backend") -> None:
        """Add documents, or replace those of the same `_id`."""
        with MongoClient[Json](self.mongodb) as client:
            for document in documents:
                client[database][kind].replace_one({"_id": document["_id"]}, document, upsert=True)

    def index(self, *events: Json, company: str = COMPANY) -> None:
        """Add events, each to the index of its type."""
        lines: list[Json] = []
        for event in events:
            id = uuid4().hex if event["type"] == "log" else _id(event)
            lines += [{"index": {"_index": f"events-{event['type']}-{company}", "_id": id}}, event]
        body = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
        answer = elasticsearch.call(
            self.elasticsearch, "POST", "/_bulk?refresh=true&filter_path=errors,items.*.error", body
        )
        assert not answer["errors"], answer


def _id(event: Json) -> str:
    names = [str(event[name]) for name in ("task", "iter", "metric", "variant", "key") if name in event]
    return hashlib.md5("-".join(names).encode()).hexdigest()


@contextmanager
def clearml_server(mongodb_url: str, elasticsearch_url: str) -> Iterator[ClearmlServer]:
    """An empty one, whose data are deleted in the end. Its names are those of any other (`alone_on_engines`)."""
    names = {"log": {"msg": {"type": "text", "index": False}}, "training_stats_scalar": {}, "plot": {}}
    for name in (*names, "training_debug_image"):
        _template(elasticsearch_url, name, names.get(name, {}))
    server = ClearmlServer(mongodb_url, elasticsearch_url)
    server.write("company", {"_id": COMPANY, "name": "clearml"})
    server.write("versions", {"_id": "v", "num": "2.3.0", "created": TIME})
    server.write("settings", {"_id": "server.uuid", "value": "the-uuid"})
    try:
        yield server
    finally:
        for database in ("backend", "auth"):
            mongodb.drop(mongodb_url, database)
        for name in (*names, "training_debug_image", "training_stats_vector"):
            for index in elasticsearch.call(elasticsearch_url, "GET", f"/events-{name}-*"):
                elasticsearch.call(elasticsearch_url, "DELETE", f"/{index}")
            if name != "training_stats_vector":
                elasticsearch.call(elasticsearch_url, "DELETE", f"/_index_template/clearml-{name}")


def _template(url: str, type: str, more: Json) -> None:
    keyword = {name: {"type": "keyword"} for name in ("task", "type", "worker", "metric", "variant")}
    dates = {name: {"type": "date"} for name in ("@timestamp", "timestamp")}
    numbers = {"iter": {"type": "long"}, "value": {"type": "float"}, "model_event": {"type": "boolean"}}
    mappings = {"properties": {**keyword, **dates, **numbers, **more}}
    template = {"index_patterns": [f"events-{type}-*"], "priority": 500, "template": {"mappings": mappings}}
    elasticsearch.call(url, "PUT", f"/_index_template/clearml-{type}", template)


# --- documents ---------------------------------------------------------------------------------------


def fill(server: ClearmlServer) -> None:
    """People, projects, a model, tasks, a queue, and events of each type."""
    server.write(
        "user",
        {
            "_id": ANN,
            "company": COMPANY,
            "name": "Ann",
            "given_name": "Ann",
            "family_name": "Lee",
            "created": TIME,
            "preferences": '{"theme":"dark"}',
        },
        {"_id": "ann-two", "company": COMPANY, "name": "Ann", "created": TIME.replace(year=2025)},
        {"_id": "__tests__", "company": COMPANY, "name": "Default User", "created": TIME},
    )
    server.write(
        "user",
        account(ANN, "user", key(ANNS_KEY, ANNS_SECRET, label="laptop", last_used=TIME, last_used_from="host")),
        account("ann-two", "admin", key("SECONDKEY", "s2")),
        account("__tests__", "user", key("EGRTCO8JMSIGI6S39GTP43NFWXDQOW", "public")),
        account("__apiserver__", "system", key("SYSTEMKEY", "s"), name="apiserver", autocreated=True),
        database="auth",
    )
    server.write(
        "project",
        {"_id": "p1", "company": COMPANY, "user": ANN, "name": "top", "basename": "top", "created": TIME, "path": []},
        {
            "_id": "p2",
            "company": COMPANY,
            "user": ANN,
            "name": "top/below",
            "basename": "below",
            "created": TIME,
            "parent": "p1",
            "path": ["p1"],
            "system_tags": ["hidden"],
            "default_output_destination": "http://old:8081/x",
            "featured": 9999,
        },
    )
    server.write("model", model())
    server.write("task", task(), task("task-two", name="two"), task("task-three", name="three", status="queued"))
    server.write("queue", queue("task-three", "task-two", TASK))
    server.index(*events())


def account(id: str, role: str, *keys: Json, **fields: Any) -> Json:
    return {
        "_id": id,
        "company": COMPANY,
        "name": id,
        "role": role,
        "email": f"{id}@x.org",
        "credentials": list(keys),
    } | (fields)


def key(key: str, secret: str, **fields: Any) -> Json:
    return {"key": key, "secret": secret, **fields}


def model(id: str = MODEL, **fields: Any) -> Json:
    return {
        "_id": id,
        "company": COMPANY,
        "user": ANN,
        "name": "a model",
        "project": "p2",
        "task": TASK,
        "created": TIME,
        "last_update": TIME,
        "uri": "http://old:8081/m/weights.bin",
        "framework": "PyTorch",
        "labels": {"cat.x": 1, "dog": 2},
        "design": {"layers": {"a.b": 3}},
        "metadata": {"acc%2Ekey": {"key": "acc.key", "type": "float", "value": "0.9"}},
        "ready": True,
        "tags": ["m"],
        "ui_cache": {},
        **fields,
    }


def task(id: str = TASK, **fields: Any) -> Json:
    """A task with all that one can have. `fields` replace its own."""
    last = {"metric": "loss", "variant": "train", "value": 0.25, "min_value": 0.25, "min_value_iteration": 3}
    return {
        "_id": id,
        "company": COMPANY,
        "user": ANN,
        "name": "one",
        "type": "training",
        "status": "completed",
        "status_reason": "done",
        "status_changed": TIME,
        "comment": "said",
        "created": TIME,
        "started": TIME,
        "completed": TIME,
        "last_update": TIME,
        "last_change": TIME,
        "last_changed_by": ANN,
        "active_duration": 17,
        "parent": "task-parent",
        "project": "p2",
        "tags": ["y", "x"],
        "system_tags": ["archived"],
        "output": {"destination": "http://old:8081/out", "result": "success"},
        "script": {"binary": "python3", "entry_point": "t.py", "requirements": {"pip": ["a==1.0"]}, "diff": "- a"},
        "hyperparams": {
            "Gen%2Eeral": {
                "a%2Eb": {"_cls": "ParamsItem", "section": "Gen.eral", "name": "a.b", "value": "1", "type": "int"},
                "%%_%24x": {"section": "Gen.eral", "name": "%_$x", "value": "2"},
                "%_%_dunder": {"section": "Gen.eral", "name": "__dunder", "value": "3"},
            }
        },
        "configuration": {"conf%2Eig": {"name": "conf.ig", "value": "text", "type": "dict"}},
        "execution": {
            "queue": "q1",
            "framework": "PyTorch",
            "parameters": {},
            "model_desc": {},
            "model_labels": {"cat%2Ex": 1},
            "artifacts": {
                "0cc1_output": {
                    "key": "zeta",
                    "type": "dict",
                    "mode": "output",
                    "uri": "http://old:8081/a/z.json",
                    "content_size": 12,
                    "timestamp": 1_700_000_000,
                    "type_data": {"preview": "{}", "content_type": "application/json"},
                    "display_data": [["a.b", 1]],
                },
                "92eb_output": {"key": "alpha", "type": "np", "mode": "output", "uri": "s3://b/a.npz", "hash": "h"},
            },
        },
        "models": {"input": [], "output": [{"name": "out", "model": MODEL, "updated": TIME}]},
        "container": {"image": "ubuntu", "setup%_%_script": None},
        "runtime": {"progress": "50", "a%2Eb": "set by edit_runtime", "_pid": 3, "raw.key": 1},
        "last_iteration": 3,
        "last_worker": "w:0",
        "last_metrics": {"m1": {"v1": last, "v2": {**last, "variant": "val", "x_axis_label": "epoch"}}},
        "metric_stats": {
            "m1": {"metric": "loss", "event_stats_by_type": {"training_stats_scalar": {"last_update": T0}}}
        },
        "unique_metrics": ["loss/train"],
        **fields,
    }


def queue(*tasks: str, id: str = "q1") -> Json:
    return {
        "_id": id,
        "company": COMPANY,
        "name": "default",
        "created": TIME,
        "tags": [],
        "system_tags": ["default"],
        "entries": [{"task": task, "added": TIME} for task in tasks],
        "metadata": {"k%2Ek": {"key": "k.k", "type": "str", "value": "v"}},
    }


# --- events ------------------------------------------------------------------------------------------


def events(task: str = TASK) -> Iterator[Json]:
    """Events of each type: 40 scalars and 2 single values, 30 lines, plots, images, a vector, and a model's scalar."""
    for iter in range(20):
        yield scalar(iter, 1 / (iter + 1), task=task)
        yield scalar(iter, -iter, task=task, metric="a-b", variant="c")
    yield scalar(-(2**31), 0.93, task=task, metric="Summary", variant="accuracy")
    yield scalar(-(2**31), 0.5, task=task, metric="Summary", variant="f1")
    yield from logs(range(30), task=task)
    yield plot(1, '{"data": [], "layout": {"images": [{"source": "http://old:8081/i.png"}]}}', task=task)
    yield plot(2, '{"data": [1]}', task=task, packed=True)
    for iter in (1, 2):
        yield event(
            "training_debug_image", iter, task=task, metric="i", variant="v", key="k", url=f"http://old:8081/k{iter}"
        )
    if task == TASK:
        yield event("training_stats_vector", 1, metric="vec", variant="v", value=[1.5, 2.5])
        yield {**scalar(1, 7.5, task=MODEL, metric="mm", variant="mv"), "model_event": True}


def event(type: str, iter: int | None, **fields: Any) -> Json:
    found = {"type": type, "task": TASK, "timestamp": T0 + (iter or 0), "worker": "w:0", "@timestamp": WRITTEN}
    return {**found, "iter": iter, "model_event": False, **fields}


def scalar(iter: int, value: Any, **fields: Any) -> Json:
    return event("training_stats_scalar", iter, **{"metric": "loss", "variant": "train", "value": value, **fields})


def logs(numbers: Iterable[int], task: str = TASK, written: str = WRITTEN) -> list[Json]:
    """Lines `line N`, three of each time."""
    return [
        event("log", 0, task=task, metric="", variant="", level="info", msg=f"line {n}")
        | {"timestamp": T0 + n // 3, "@timestamp": written}
        for n in numbers
    ]


def plot(iter: int, text: str, *, packed: bool = False, **fields: Any) -> Json:
    kept = {"plot_data": base64.encodebytes(zlib.compress(text.encode(), 1)).decode()} if packed else {"plot_str": text}
    return event("plot", iter, **{"metric": "p", "variant": "v", "plot_len": len(text), **kept, **fields})

"""Two servers on the same engines: each is up to date with itself at once, with the other soon, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from typing import Any

import httpx
import pytest

from tests.data.streams import events_of
from tests.engines.fixtures import own_engines
from tests.harness import PATIENCE, Served, served, wait_until
from tests.robustness.writers import FIRST_TIME, Task, Writer, is_stored, new_task, writing


@pytest.fixture(scope="module")
def servers(
    tmp_path_factory: pytest.TempPathFactory, elasticsearch_url: str, mongodb_url: str
) -> Iterator[dict[str, Served]]:
    """One of either consistency, with one data folder."""
    data = tmp_path_factory.mktemp("servers") / "data"
    with own_engines(elasticsearch_url, mongodb_url) as engines, ExitStack() as running:
        yield {
            consistency: running.enter_context(served(data, consistency=consistency, **engines))
            for consistency in ("session", "strict")
        }


def write(server: Served, task: str, n: int) -> None:
    """One event of every kind, at iteration n."""
    common = {"task": task, "metric": "metric", "variant": "variant", "iter": n, "timestamp": FIRST_TIME + n}
    kinds: list[dict[str, Any]] = [
        {"type": "training_stats_scalar", "value": n},
        {"type": "log", "msg": f"line {n}"},
        {"type": "plot", "plot_str": "{}"},
    ]
    for kind in kinds:
        assert server.call("events.add", {**common, **kind})["added"] == 1


def seen(server: Served, task: str) -> list[int]:
    """How many events of each kind there are."""
    metrics = server.call("events.scalar_metrics_iter_histogram", {"task": task, "samples": 0})
    points = metrics["metric"]["variant"]["x"] if metrics else []
    lines = server.call("events.get_task_log", {"task": task})["total"]
    plots = server.call("events.get_task_plots", {"task": task, "iters": 100})["total"]
    return [len(points), lines, plots]


def are_seen(server: Served, task: str, counts: list[int]) -> bool:
    return seen(server, task) == counts


def test_a_server_sees_at_once_what_it_acknowledged(servers: dict[str, Served]) -> None:
    for server in servers.values():
        task = new_task(server)
        for n in range(3):
            write(server, task, n)
            assert seen(server, task) == [n + 1] * 3


def test_every_server_tells_what_another_acknowledged_since_a_cursor_of_any(servers: dict[str, Served]) -> None:
    one, other = servers.values()
    task = new_task(one)
    request = {"tasks": [task], "cursor": one.call("events.get_changes", {"tasks": [task]})["cursor"]}
    write(one, task, 7)
    for server in (other, one):
        answer = server.call("events.get_changes", request)
        (changed,) = answer["changes"]
        assert [(series["from"], series["to"]) for series in changed["series"]] == [(7, 7), (7, 7)]
        assert (changed["everything"], changed["log_lines"]) == (False, 1)
    assert other.call("events.get_changes", {**request, "cursor": answer["cursor"]})["changes"] == []
    one.call("events.delete_for_task", {"task": task})
    (changed,) = other.call("events.get_changes", {**request, "cursor": answer["cursor"]})["changes"]
    assert changed["everything"]


def test_a_strict_server_sees_at_once_what_another_acknowledged(servers: dict[str, Served]) -> None:
    task = new_task(servers["session"])
    for n in range(3):
        write(servers["session"], task, n)
        assert seen(servers["strict"], task) == [n + 1] * 3


def test_a_server_sees_soon_what_another_acknowledged(servers: dict[str, Served]) -> None:
    task = new_task(servers["strict"])
    for n in range(2):
        write(servers["strict"], task, n)
        wait_until(partial(are_seen, servers["session"], task, [n + 1] * 3))


def test_a_document_is_the_same_at_both_at_once(servers: dict[str, Served]) -> None:
    for one, other in pairwise([*servers.values()] * 2):
        task = new_task(one)
        other.call("tasks.edit", {"task": task, "comment": "seen"})
        assert one.call("tasks.get_by_id", {"task": task})["task"]["comment"] == "seen"
        one.call("tasks.delete", {"task": task, "force": True})
        other.call("tasks.get_by_id", {"task": task}, expect=400)


def test_clients_of_both_write_to_one_task(servers: dict[str, Served]) -> None:
    task = new_task(servers["session"])
    writers = [Writer(server, task, f"{name} {n}") for name, server in servers.items() for n in range(2)]
    with writing(writers):
        wait_until(lambda: all(writer.acknowledged >= 25 for writer in writers))
    assert not [writer.refusals for writer in writers if writer.refusals]
    for server in servers.values():
        wait_until(partial(is_stored, server, writers))


def test_clients_of_both_write_to_one_series(servers: dict[str, Served]) -> None:
    task, batches, points, clients = new_task(servers["session"]), 10, 20, 4
    every = [*servers.values()] * (clients // len(servers))

    def write_some(client: int) -> None:
        common = {"type": "training_stats_scalar", "task": task, "metric": "metric", "variant": "variant"}
        iters = [n * clients + client for n in range(batches * points)]
        with every[client].client() as connection:
            for batch in range(0, len(iters), points):
                events = [
                    {**common, "iter": n, "timestamp": FIRST_TIME + n, "value": value_of(n)}
                    for n in iters[batch : batch + points]
                ]
                body = "\n".join(map(json.dumps, events))
                assert connection.post("/events.add_batch", content=body).json()["data"]["added"] == points

    with ThreadPoolExecutor(clients) as threads:
        list(threads.map(write_some, range(clients)))
    values = [value_of(n) for n in range(clients * batches * points)]
    told = {"value": values[-1], "min_value": min(values), "max_value": max(values), "count": len(values)}
    told |= {"min_value_iteration": values.index(min(values)), "max_value_iteration": values.index(max(values))}
    for server in servers.values():
        wait_until(partial(is_told, server, task, told))
        curve = server.call("events.scalar_metrics_iter_histogram", {"task": task, "samples": 0})["metric"]["variant"]
        assert (curve["x"], curve["y"]) == (list(range(len(values))), values)


def value_of(iter: int) -> float:
    return (iter * 2_654_435_761 % 1_000_003) / 8


def is_told(server: Served, task: str, expected: dict[str, float]) -> bool:
    """Whether the task's document says this of its one series."""
    last_metrics = server.call("tasks.get_by_id", {"task": task})["task"]["last_metrics"]
    return any(expected.items() <= told.items() for variants in last_metrics.values() for told in variants.values())


def test_a_token_of_one_is_good_for_the_other(servers: dict[str, Served]) -> None:
    token = servers["session"].call("auth.login")["token"]
    headers = {"Authorization": f"Bearer {token}"}
    answer = httpx.post(f"{servers['strict'].api_url}/users.get_current_user", headers=headers, timeout=PATIENCE)
    assert answer.status_code == 200


def test_a_scroll_id_of_one_is_good_for_the_other(servers: dict[str, Served]) -> None:
    task = new_task(servers["session"])
    for n in range(3):
        write(servers["session"], task, n)
    request = {"task": task, "event_type": "log", "batch_size": 2}
    page = servers["session"].call("events.get_task_events", request)
    rest = servers["strict"].call("events.get_task_events", {**request, "scroll_id": page["scroll_id"]})
    assert [event["msg"] for event in page["events"] + rest["events"]] == ["line 0", "line 1", "line 2"]


def test_what_a_killed_server_acknowledged_is_at_the_other(servers: dict[str, Served]) -> None:
    killed, other = servers["session"], servers["strict"]
    writers = [Writer(killed, new_task(killed), name) for name in ("one", "two")]
    with writing(writers):
        wait_until(lambda: all(writer.acknowledged >= 20 for writer in writers))
        killed.kill()
    for writer in writers:
        stored, expected = Task(other, writer.task).stored(writer), writer.expected(writer.acknowledged)
        assert expected.points["risen"].items() <= stored.points["risen"].items()
        assert set(expected.lines) <= set(stored.lines)
        assert len(set(stored.lines)) == len(stored.lines)
    killed.start()
    goals = [writer.acknowledged + 5 for writer in writers]
    with writing(writers):  # the batch that was under way, which may be kept by half, is sent again first
        wait_until(lambda: all(writer.acknowledged >= goal for writer, goal in zip(writers, goals, strict=True)))
    wait_until(partial(is_stored, other, writers))


def test_a_stream_of_one_server_tells_what_the_other_took(servers: dict[str, Served]) -> None:
    """And a reader goes on at the other server, where it stopped at the first one."""
    one, other = servers.values()
    task = one.call("tasks.create", {"name": "followed", "type": "training"})["id"]
    cursor = ""
    for reader, writer, n in ((one, other, 1), (other, one, 2)):
        asked = {"task": task, "since": cursor} if cursor else {"task": task}
        with reader.client() as client, client.stream("GET", "/data/live", params=asked) as answer:
            told = events_of(answer.iter_lines())
            assert not cursor or next(told).event == "", "nothing has changed in between"
            write(writer, task, n)
            writer.call("tasks.started" if n == 1 else "tasks.stopped", {"task": task})
            seen: dict[str, Any] = {}
            wanted = {"scalars", "samples", "log", "status"}
            while not wanted <= seen.keys() or seen["status"]["status"] != ("in_progress" if n == 1 else "stopped"):
                event = next(told)
                seen[event.event], cursor = event.data, event.id or cursor
            assert seen["scalars"] == {"task": task, "series": [["metric", "variant", n, n]], "count": 1}

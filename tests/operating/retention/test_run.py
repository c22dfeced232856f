"""What retention deletes, and what it leaves alone."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.model import EventType, Owner, Sample
from apiserver.events.queries import PageQuery, Range, SeriesQuery
from apiserver.operating.retention import due, run, shown_files
from apiserver.operating.retention.bounds import RetentionBounds
from apiserver.operating.retention.due import Due
from apiserver.settings.retention_rules import RetentionRule, rule_for
from apiserver.stores.documents.query import Update
from apiserver.stores.events.base import EventStore, EventStoreBusy
from tests.chance import examples
from tests.contract.event_stores import batch, iters, lines, messages, sample, scalars
from tests.contract.plain_event_store import PlainEventStore
from tests.operating.retention.stores import COMPANY, DAY, IMAGES, LOGS, NOW, OWNER, Stores, stores_in

pytestmark = pytest.mark.anyio

OLD, YOUNG = NOW - 91 * DAY, NOW - 89 * DAY
SCALARS = RetentionRule(("scalars",), "90 d")
PLOTS = RetentionRule(("plots",), "90 d")


def image(iter: int, url: str = "", **how: Any) -> Any:
    document = b'{"url": "%s"}' % (url or f"http://localhost:8081/{iter}.png").encode()
    return sample(iter, type=EventType.IMAGE, metric="images", document=document, **how)


LATE_PLOT = sample(4, document=b'{"plot_str": "{}", "source_urls": ["http://localhost:8081/0.png"]}')


async def test_lines_go_by_their_own_times(stores: Stores) -> None:
    await stores.task()
    bound = NOW - 90 * DAY
    await stores.events.add(batch(lines(["old", "younger", "young"], timestamps=[bound - 1, bound, NOW])))
    (gone,) = await stores.run(LOGS)
    assert (gone.task, gone.type, gone.keep, gone.events, gone.bytes) == ("task", EventType.LOG, "90 d", 1, 3)
    assert (gone.oldest, gone.newest) == (bound - 1, bound - 1)
    assert await messages(stores.events, SeriesQuery(OWNER, EventType.LOG)) == ["younger", "young"]
    assert await stores.run(LOGS) == []


async def test_samples_go_by_their_own_times(stores: Stores) -> None:
    await stores.task()
    await stores.events.add(batch(*(sample(n, timestamp=[YOUNG, OLD][n % 2]) for n in range(5))))
    (gone,) = await stores.run(PLOTS)
    assert gone.events == 2
    assert await iters(stores.events, SeriesQuery(OWNER, EventType.PLOT)) == [0, 2, 4]


async def test_each_series_keeps_its_newest_iterations(stores: Stores) -> None:
    await stores.task()
    often = [image(n, variant="often", key=key, timestamp=NOW) for n in range(0, 50, 10) for key in "ab"]
    await stores.events.add(batch(*often, image(0, variant="seldom", timestamp=OLD), image(3, variant="seldom")))
    (gone,) = await stores.run(IMAGES)
    assert gone.events == 6
    left = await stores.events.samples(SeriesQuery(OWNER, EventType.IMAGE), PageQuery(100))
    assert [(one.variant, one.iter) for one in left] == [
        *(("seldom", 0), ("seldom", 3)),
        *(("often", 30), ("often", 30), ("often", 40), ("often", 40)),
    ]


async def test_each_project_is_compared_with_the_rules_once_and_in_another_thread(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger's long patterns, or very many rules, hold up nobody else."""
    project = await stores.project("lab")
    for number in range(5):
        await stores.task(str(number), project=project)
    stores.bounds = RetentionBounds(tasks=2)
    compared = []

    def noted(rules: Sequence[RetentionRule], project: str | None, type: str) -> RetentionRule | None:
        compared.append((project, type, threading.get_ident() == threading.main_thread().ident))
        return rule_for(rules, project, type)

    monkeypatch.setattr(run, "rule_for", noted)
    await stores.would_go(LOGS)
    assert sorted(compared, key=str) == sorted(
        [(project, type.plural, False) for project in (None, "lab") for type in EventType], key=str
    )


async def test_only_tasks_of_the_company_are_read(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    for company in ("one", "other"):
        await stores.task(f"of {company}", company=company)
    read = []
    find = stores.documents.find

    async def noted(collection: str, *wanted: Any, **how: Any) -> Any:
        found = await find(collection, *wanted, **how)
        read.extend([document["id"] for document in found])
        return found

    monkeypatch.setattr(stores.documents, "find", noted)
    looking = run.Run(stores.events, stores.documents, [LOGS], now=NOW, company="one")
    assert [gone async for gone in looking.would_go()] == []
    assert read == ["of one"]


async def test_series_with_images_at_the_same_iterations_are_deleted_together(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven series, of which one has more iterations, by calls for up to four series."""
    stores.bounds = RetentionBounds(series=4)
    await stores.task()
    images = [image(n, variant=str(v), timestamp=NOW) for v in range(7) for n in range(5 if v < 6 else 6)]
    await stores.events.add(batch(*images))
    calls: list[tuple[int, int]] = []
    real = stores.events.delete_samples

    async def delete_samples(series: SeriesQuery, iterations: Range, *how: Any) -> int:
        calls.append((sum(len(of.variants) for of in series.selection), iterations.greatest))
        return await real(series, iterations, *how)

    monkeypatch.setattr(stores.events, "delete_samples", delete_samples)
    (gone,) = await stores.run(IMAGES)
    assert gone.events == 6 * 3 + 4
    assert sorted(calls) == [(1, 3), (2, 2), (4, 2)]
    left = await stores.events.samples(SeriesQuery(OWNER, EventType.IMAGE), PageQuery(100))
    assert sorted((one.variant, one.iter) for one in left) == [
        (str(v), n) for v in range(7) for n in ((3, 4) if v < 6 else (4, 5))
    ]


async def test_scalars_of_a_task_go_together_once_all_are_old(stores: Stores) -> None:
    await stores.task()
    other = await stores.task("other")
    await stores.events.add(batch(scalars([1, 2], timestamps=[OLD, OLD]), scalars([1], timestamps=[OLD], metric="a")))
    of_other = (
        scalars([1, 2], timestamps=[OLD, YOUNG], owner=other),
        scalars([1], timestamps=[OLD], metric="a", owner=other),
    )
    await stores.events.add(batch(*of_other))
    (gone,) = await stores.run(SCALARS)
    assert (gone.task, gone.events, gone.oldest, gone.newest) == ("task", 3, OLD, OLD)
    assert await stores.count(EventType.SCALAR) == 0
    assert await stores.count(EventType.SCALAR, other) == 3


@pytest.mark.test
@pytest.mark.parametrize(
    "fields",
    [
        {"status": "published"},
        {"status": "publishing"},
        {"status": "in_progress"},
        {"status": "queued"},
        {"status": "unknown"},
        {"type": "report"},
        {"public": True},
        {"created": "2023-11-01T00:00:00+00:00"},
        {"imported": "2023-11-01T00:00:00+00:00"},
    ],
    ids=str,
)
async def test_a_task_that_is_left_alone(stores: Stores, fields: dict[str, Any]) -> None:
    """The last two of these tasks were made, or imported, after the times that their events have."""
    await stores.task(**fields)
    await stores.events.add(batch(lines(["old"], timestamps=[OLD])))
    assert await stores.would_go(LOGS) == await stores.run(LOGS) == []
    assert await stores.count(EventType.LOG) == 1


async def test_of_an_imported_task_only_the_time_counts_that_the_server_wrote(stores: Stores) -> None:
    await stores.task(imported="2023-08-15T00:00:00+00:00", created="2099-01-01T00:00:00+00:00")
    await stores.events.add(batch(lines(["old"], timestamps=[OLD - 1000 * DAY])))
    assert await stores.run(LOGS, now=NOW - 2 * DAY) == []
    (gone,) = await stores.run(LOGS)
    assert gone.events == 1


@pytest.mark.parametrize(("rule", "deleted"), [(LOGS, True), (PLOTS, False)], ids=["deleted", "kept"])
async def test_an_imported_task_tells_that_events_were_deleted(
    stores: Stores, rule: RetentionRule, deleted: bool
) -> None:
    for id, fields in (("task", {"imported": "2022-01-01T00:00:00+00:00"}), ("another", {})):
        owner = await stores.task(id, **fields)
        await stores.events.add(batch(lines(["old"], timestamps=[OLD], owner=owner)))
    await stores.would_go(rule)
    assert len(await stores.run(rule)) == 2 * deleted
    told = {task["id"]: "events_deleted" in task for task in await stores.documents.find("tasks", {})}
    assert told == {"task": deleted, "another": False}


async def test_models_keep_their_events(stores: Stores) -> None:
    model = Owner(COMPANY, "task", is_model=True)
    await stores.task()
    await stores.events.add(batch(lines(["old"], timestamps=[OLD], owner=model)))
    assert await stores.run(LOGS) == []
    assert await stores.count(EventType.LOG, model) == 1


# --- while others are at work -----------------------------------------------------------------------


class Meanwhile:
    """Does something once, after what is due was read and before it is deleted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, what: Any) -> None:
        self._parts, self._what = due.parts, what
        monkeypatch.setattr(due, "parts", self.parts)

    async def parts(self, store: EventStore, found: Due) -> Any:
        async for part in self._parts(store, found):
            yield part
        if self._what is not None:
            what, self._what = self._what, None
            await what()


@pytest.mark.test
@pytest.mark.parametrize("status", ["published", "queued", "in_progress"])
async def test_a_task_that_is_published_or_begins_again_meanwhile_is_left_alone(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, status: str
) -> None:
    await stores.task()
    await stores.events.add(batch(lines(["old"], timestamps=[OLD])))

    async def publish() -> None:
        await stores.documents.delete("tasks", {"id": "task"})
        await stores.task(status=status)

    Meanwhile(monkeypatch, publish)
    assert await stores.run(LOGS, archive=tmp_path / "archive") == []
    assert await stores.count(EventType.LOG) == 1
    assert list((tmp_path / "archive").rglob("*.parquet")) == []


async def test_a_task_to_which_an_import_comes_meanwhile_is_left_alone(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stores.task(imported="2023-01-01T00:00:00+00:00")
    await stores.events.add(batch(lines(["old"], timestamps=[OLD])))

    async def begin() -> None:
        await stores.documents.update("tasks", {"id": "task"}, Update(set={"imported": "2023-11-14T00:00:00+00:00"}))

    Meanwhile(monkeypatch, begin)
    assert await stores.run(LOGS) == []
    assert await stores.count(EventType.LOG) == 1


async def test_a_task_that_is_moved_goes_by_the_rule_of_its_new_project(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = RetentionRule(("logs",), "for ever", "kept")
    await stores.task(project=await stores.project("scratch"))
    await stores.events.add(batch(lines(["old"], timestamps=[OLD])))
    assert [gone.project for gone in await stores.would_go(kept, LOGS)] == ["scratch"]

    async def move() -> None:
        await stores.documents.delete("tasks", {"id": "task"})
        await stores.task(project=await stores.project("kept"))

    Meanwhile(monkeypatch, move)
    assert await stores.run(kept, LOGS) == []
    assert await stores.count(EventType.LOG) == 1


async def test_what_comes_meanwhile_waits_for_the_next_run(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    await stores.task()
    await stores.events.add(batch(lines(["old"], timestamps=[OLD])))

    async def write() -> None:
        await stores.events.add(batch(lines(["late"], timestamps=[OLD + 1])))

    Meanwhile(monkeypatch, write)
    assert await stores.run(LOGS, archive=tmp_path) == []
    assert await stores.count(EventType.LOG) == 2
    (gone,) = await stores.run(LOGS, archive=tmp_path)
    assert gone.events == 2


# --- files ------------------------------------------------------------------------------------------


@pytest.mark.test
@pytest.mark.parametrize("late", [image(4, "http://localhost:8081/0.png"), LATE_PLOT], ids=["image", "plot"])
async def test_files_stay_of_what_comes_while_files_are_looked_for(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, late: Sample
) -> None:
    """The task begins to report again, and what it reports shows a file of an old image, whose name the SDK repeats."""
    await stores.task()
    await stores.events.add(batch(*map(image, range(4))))
    look, times = due.unneeded_files, list[int]()

    async def report(*asked: Any) -> set[str]:
        found = await look(*asked)
        if not times:
            await stores.events.add(batch(late))
        times.append(len(found))
        return found

    monkeypatch.setattr(due, "unneeded_files", report)
    (gone,) = await stores.run(IMAGES)
    assert (gone.events, stores.files.names) == (2, {"/1.png"})
    assert times == [2, 1]


async def test_files_stay_if_something_comes_each_time_that_they_are_looked_for(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stores.task()
    await stores.events.add(batch(*map(image, range(4))))
    look, times = due.unneeded_files, list[int]()

    async def report(*asked: Any) -> set[str]:
        await stores.events.add(batch(image(10 + len(times))))
        times.append(1)
        return await look(*asked)

    with monkeypatch.context() as patch:
        patch.setattr(due, "unneeded_files", report)
        (gone,) = await stores.run(IMAGES)
    assert (gone.events, stores.files.names) == (2, set())
    assert len(times) == shown_files._LOOKS
    await stores.run(LOGS)
    assert stores.files.names == {"/0.png", "/1.png"}


async def test_files_stay_of_images_that_could_not_be_deleted(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    await stores.task()
    await stores.events.add(batch(*map(image, range(4))))

    async def delete_samples(*asked: Any, **how: Any) -> int:
        raise EventStoreBusy("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(stores.events, "delete_samples", delete_samples)
        assert await stores.run(IMAGES) == []
    assert stores.failures == ["images of task task: the disk is full"]
    assert (stores.files.names, await stores.count(EventType.IMAGE)) == (set(), 4)
    (gone,) = await stores.run(IMAGES)
    assert (gone.events, stores.files.names) == (2, {"/0.png", "/1.png"})


async def test_files_go_that_only_deleted_images_show(stores: Stores) -> None:
    """The name of the image at iteration 0 is used again at iteration 3, as the SDK does."""
    at = "http://localhost:8081/"
    await stores.task(execution={"artifacts": [{"key": "a", "uri": f"{at}2.png"}]})
    await stores.documents.insert("models", [{"id": "model", "company": COMPANY, "uri": f"{at}1.png"}])
    shown = ["0", "1", "2", "0", "4", "5", "6", "7"]
    await stores.events.add(batch(*(image(n, f"{at}{name}.png") for n, name in enumerate(shown))))
    plot = b'{"plot_str": "{}", "source_urls": ["%s5.png"]}' % at.encode()
    await stores.events.add(batch(sample(1, document=plot)))
    await stores.run(RetentionRule(("images",), "5 iterations"))
    assert stores.files.names == set()
    await stores.run(IMAGES)
    assert stores.files.names == {"/0.png", "/4.png"}


async def test_files_stay_that_something_shows_by_another_spelling_of_their_url(stores: Stores) -> None:
    """Of seven images, five are due. All but one of their files are needed still."""
    artifacts = [{"key": "a", "uri": "http://127.0.0.1:8081/1.png"}, {"key": "b"}]
    await stores.task(execution={"artifacts": artifacts})
    models: list[dict[str, Any]] = [{"uri": "http://localhost:8008/files/2.png"}, {"uri": None}, {}]
    await stores.documents.insert("models", [{"id": str(n), "company": COMPANY, **m} for n, m in enumerate(models)])
    shown = [f"http://files.example:8081/{name}.png" for name in ("0", "1", "2", "3", "a%62c")]
    shown += ["HTTP://LOCALHOST:8081//0.png", "https://files.example/files/abc.png", "s3://bucket/0.png"]
    await stores.events.add(batch(*(image(n, url) for n, url in enumerate(shown))))
    await stores.run(RetentionRule(("images",), "3 iterations"))
    assert stores.files.names == {"/3.png"}


async def test_files_of_other_tasks_stay_whatever_images_show(stores: Stores) -> None:
    await stores.task()
    others = f"p/other.{'0' * 32}/artifacts/data.csv"
    await stores.events.add(batch(image(0, f"http://localhost:8081/{others}"), image(1), image(2)))
    await stores.run(RetentionRule(("images",), "1 iterations"))
    assert stores.files.names == {"/1.png"}


async def test_documents_are_asked_for_some_models_at_a_time(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    """MongoDB takes no command of many megabytes, and a task may show any number of files."""
    stores.bounds = RetentionBounds(urls=10)
    await stores.task()
    await stores.events.add(batch(*(image(n) for n in range(35))))
    real, asked = stores.documents.find, list[int]()

    async def find(collection: str, filter: Any, **how: Any) -> Any:
        if collection == "models" and "uri" in filter:
            asked.append(len(filter["uri"].values))
            if len(asked) == 2:  # a model of one of the files is made just now
                made = {"id": "new", "company": COMPANY, "uri": "http://localhost:8081/7.png"}
                await stores.documents.insert("models", [made])
        return await real(collection, filter, **how)

    monkeypatch.setattr(stores.documents, "find", find)
    await stores.run(IMAGES)
    assert asked == [10, 10, 10, 3]
    assert stores.files.names == {f"/{n}.png" for n in range(33)} - {"/7.png"}


# --- by chance --------------------------------------------------------------------------------------

STATUSES = ("created", "queued", "in_progress", "stopped", "failed", "completed", "publishing", "published")
PROJECTS = ("a", "a/b", "a/b/c", "b*", "b/c")


@dataclass(frozen=True)
class Sent:
    """An event of a task."""

    type: EventType
    variant: str
    iter: int
    age: int

    def made(self, owner: Owner) -> Any:
        at = NOW - self.age * DAY
        if self.type is EventType.SCALAR:
            return scalars([1.0], iters=[self.iter], timestamps=[at], variant=self.variant, owner=owner)
        if self.type is EventType.LOG:
            return lines([f"{self.variant} {self.iter}"], timestamps=[at], variant=self.variant, owner=owner)
        return sample(self.iter, type=self.type, variant=self.variant, timestamp=at, owner=owner)


Tasks = list[tuple[str, str | None, bool, list[Sent]]]
sent = st.builds(Sent, st.sampled_from(EventType), st.sampled_from("xy"), st.integers(0, 6), st.integers(0, 8))
tasks = st.lists(
    st.tuples(
        *(st.sampled_from(STATUSES), st.none() | st.sampled_from(PROJECTS), st.booleans()),
        st.lists(sent, max_size=12, unique_by=lambda one: (one.type, one.variant, one.iter)),
    ),
    max_size=4,
)
patterns = st.sampled_from(["", "*", "a", "a/*", "*/b", "b*", "b/c", "*a*"])
rules = st.lists(
    st.builds(
        RetentionRule,
        st.lists(st.sampled_from(["scalars", "logs"]), min_size=1, max_size=2).map(tuple),
        st.sampled_from(["1 d", "3 d", "1 w", "for ever"]),
        patterns,
    )
    | st.builds(
        RetentionRule,
        st.lists(st.sampled_from(["images", "plots", "vectors"]), min_size=1, max_size=3).map(tuple),
        st.sampled_from(["1 iteration", "3 iterations", "2 d", "for ever"]),
        patterns,
    ),
    max_size=4,
)


def stay(events: list[Sent], rule: RetentionRule) -> list[Sent]:
    """The events of one type that a rule keeps, word by word."""
    if rule.iterations is not None:
        newest = {
            variant: sorted({one.iter for one in events if one.variant == variant})[-rule.iterations :]
            for variant in "xy"
        }
        return [one for one in events if one.iter in newest[one.variant]]
    assert rule.days is not None
    young = [one for one in events if one.age <= rule.days]
    return events if young and events[0].type is EventType.SCALAR else young


def expected(case: Tasks, rules: list[RetentionRule]) -> list[dict[EventType, list[Sent]]]:
    """What is left of each task, by type."""
    left = []
    for status, project, is_report, events in case:
        of_task = {type: [one for one in events if one.type is type] for type in EventType}
        for type, some in of_task.items():
            rule = rule_for(rules, project, type.plural)
            at_rest = status in ("created", "stopped", "failed", "completed")
            if rule is not None and some and at_rest and not is_report:
                of_task[type] = stay(some, rule)
        left.append(of_task)
    return left


async def kept(store: EventStore, owner: Owner, type: EventType) -> set[tuple[str, int]]:
    """The variants and iterations of the events of a type."""
    series = SeriesQuery(owner, type)
    if type is EventType.SCALAR:
        points = await store.scalar_points(series, PageQuery(1000))
        return {(points.names[n][1], iter) for n, iter in zip(points.series, points.iters.tolist(), strict=True)}
    if type is EventType.LOG:
        return {(one[0], int(one[2:])) for one in await messages(store, series)}
    return {(one.variant, one.iter) for one in await store.samples(series, PageQuery(1000))}


async def same_as_word_by_word(case: Tasks, rules: list[RetentionRule]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with stores_in(Path(folder), PlainEventStore()) as stores:
            projects = {name: await stores.project(name) for name in PROJECTS}
            owners = []
            for n, (status, project, is_report, events) in enumerate(case):
                kind, home = "report" if is_report else "training", projects[project] if project else None
                owners.append(await stores.task(str(n), status=status, type=kind, project=home))
                if events:
                    await stores.events.add(batch(*(one.made(owners[-1]) for one in events)))
            told = await stores.would_go(*rules)
            for owner, (*_, events) in zip(owners, case, strict=True):
                assert await stores.events.events_count(owner) == len(events)
            assert await stores.run(*rules) == told
            left = expected(case, rules)
            for owner, of_task in zip(owners, left, strict=True):
                for type, some in of_task.items():
                    assert await kept(stores.events, owner, type) == {(one.variant, one.iter) for one in some}
            counted = {(gone.task, gone.type): gone.events for gone in told}
            for n, (*_, events) in enumerate(case):
                for type, some in left[n].items():
                    before = sum(one.type is type for one in events)
                    assert counted.get((str(n), type), 0) == before - len(some)


@pytest.mark.test
@examples(60)
@given(tasks, rules)
def test_it_deletes_just_what_no_rule_keeps_and_nothing_published(case: Tasks, rules: list[RetentionRule]) -> None:
    asyncio.run(same_as_word_by_word(case, rules))

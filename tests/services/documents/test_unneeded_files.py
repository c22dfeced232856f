"""The files of what is deleted: those that lie here go with it, those in object stores are named."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.common.times import from_now
from apiserver.stores.documents.query import Update
from tests.harness import Api
from tests.services.tasks.calls import make

pytestmark = pytest.mark.anyio

HERE = "http://testserver:8081"
SDK = {"x-clearml-client": "clearml-2.1.12"}
FILES = ["/p/i 1.png", "/p/plot.png", "/p/artifact", "/p/input", "/p/model", "/p/model-image.png"]


def url(name: str) -> str:
    return HERE + name.replace(" ", "%20")


async def upload(api: Api, *names: str) -> None:
    for name in names:
        assert (await api.raw("PUT", f"/files{name}", content=b"x")).status_code == 200


async def kept(api: Api) -> list[str]:
    """The files that are there when all has been deleted that is to be."""
    await api.backend.file_deletions.work()
    return [name for name in FILES if (await api.raw("HEAD", f"/files{name}")).status_code == 200]


async def show(api: Api, owner: str, *urls: str, **fields: Any) -> None:
    """Report a debug image a URL."""
    image = {"type": "training_debug_image", "task": owner, "metric": "m", "key": "k", **fields}
    for number, url in enumerate(urls):
        await api.call("events.add", {**image, "variant": str(number), "iter": 1, "url": url})


@pytest.fixture
async def project(api: Api) -> str:
    made: str = (await api.call("projects.create", {"name": "p"}))["id"]
    return made


@pytest.fixture
async def task(api: Api, project: str) -> str:
    """A task with a file of every kind on this server, and others elsewhere."""
    await upload(api, *FILES)
    artifacts = [
        {"key": "out", "type": "t", "uri": url("/p/artifact")},
        {"key": "in", "type": "t", "uri": url("/p/input"), "mode": "input"},
        {"key": "far", "type": "t", "uri": "s3://b/artifact"},
    ]
    made = await make(api, project=project, execution={"artifacts": artifacts})
    await show(api, made, url("/p/i 1.png"), "s3://b/i.png", "http://elsewhere/p/i.png", "gs://b/i.png")
    plot = f'{{"layout": {{"images": [{{"source": "{url("/p/plot.png")}"}}]}}}}'
    await api.call(
        "events.add", {"type": "plot", "task": made, "metric": "m", "variant": "v", "iter": 1, "plot_str": plot}
    )
    await add_model(api, made, project=project)
    return made


async def add_model(api: Api, task: str, **fields: Any) -> str:
    request = {"name": "m", "uri": url("/p/model"), "task": task, "ready": False, **fields}
    model: str = (await api.call("models.create", request))["id"]
    await show(api, model, url("/p/model-image.png"), "azure://a/b", model_event=True)
    return model


ALL_URLS = {
    "event_urls": ["azure://a/b", "gs://b/i.png", "s3://b/i.png"],
    "artifact_urls": [url("/p/artifact"), "s3://b/artifact"],
    "model_urls": [url("/p/model")],
}


@pytest.mark.test
@pytest.mark.parametrize("endpoint", ["tasks.reset", "tasks.delete"])
async def test_files_go_with_a_task(api: Api, task: str, endpoint: str) -> None:
    answer = await api.call(endpoint, {"task": task, "return_file_urls": True})
    assert answer["urls"] == ALL_URLS
    assert await kept(api) == ["/p/input"]


@pytest.mark.test
@pytest.mark.parametrize("endpoint", ["tasks.reset_many", "tasks.delete_many"])
async def test_files_go_with_many_tasks(api: Api, task: str, endpoint: str) -> None:
    answer = await api.call(endpoint, {"ids": [task, "none"], "return_file_urls": True})
    assert [item["urls"] for item in answer["succeeded"]] == [ALL_URLS]
    assert await kept(api) == ["/p/input"]


@pytest.mark.test
async def test_files_go_with_a_project(api: Api, task: str, project: str) -> None:
    answer = await api.call("projects.delete", {"project": project, "delete_contents": True, "force": True})
    assert {kind: sorted(found) for kind, found in answer["urls"].items()} == ALL_URLS
    assert await kept(api) == ["/p/input"]


async def test_files_go_with_a_model(api: Api) -> None:
    await upload(api, *FILES)
    model = await add_model(api, await make(api))
    await api.call("models.delete", {"model": model})
    assert await kept(api) == [name for name in FILES if "model" not in name]


@pytest.mark.test
async def test_files_stay_when_that_is_wanted(api: Api, task: str, project: str) -> None:
    keep = {"delete_external_artifacts": False}
    await api.call("tasks.delete", {"task": task, "delete_output_models": False, **keep})
    models = [model["id"] for model in (await api.call("models.get_all"))["models"]]
    assert (await api.call("models.delete_many", {"ids": models, **keep}))["succeeded"]
    await api.call("projects.delete", {"project": project, "delete_contents": True, "force": True, **keep})
    assert await kept(api) == FILES


@pytest.mark.test
async def test_the_file_of_a_model_stays_as_long_as_another_model_has_it(api: Api, task: str) -> None:
    other = (await api.call("models.create", {"name": "same", "uri": url("/p/model")}))["id"]
    await api.call("tasks.delete", {"task": task})
    assert await kept(api) == ["/p/input", "/p/model"]
    await api.call("models.delete", {"model": other})
    assert await kept(api) == ["/p/input"]


async def test_the_sdk_deletes_artifacts_and_models_itself(api: Api, task: str) -> None:
    """It leaves what its user wants to keep; for the rest, no file is missing that it wants to delete."""
    await api.call("tasks.delete", {"task": task}, headers=SDK)
    assert await kept(api) == ["/p/artifact", "/p/input", "/p/model"]
    for name in ("/p/i 1.png", "/p/artifact"):
        assert (await api.raw("DELETE", f"/files{name}", auth=api.auth)).status_code == 200
    assert (await api.raw("DELETE", "/files/p/none")).status_code == 404


@pytest.mark.test
async def test_files_that_a_new_run_puts_there_stay(api: Api, task: str) -> None:
    await api.call("tasks.reset", {"task": task})
    await upload(api, "/p/i 1.png")
    assert "/p/i 1.png" in await kept(api)


async def exist(api: Api, *names: str) -> list[str]:
    """Those of the files that are there."""
    await api.backend.file_deletions.work()
    return [name for name in names if (await api.raw("HEAD", f"/files{name}")).status_code == 200]


async def remove(api: Api, name: str, query: str = "") -> dict[str, Any]:
    """Delete a file, as the SDK does; the answer."""
    response = await api.raw("DELETE", f"/files{name}{query}")
    assert response.status_code == 200
    answer: dict[str, Any] = response.json()
    return answer


@pytest.mark.parametrize(
    "uri",
    [
        "http://testserver/files/p/i%201.png",
        "http://testserver/files/p/i 1.png",
        "http://localhost/files/p/i%201.png",
        "https://127.0.0.1/files/p/i 1.png",
    ],
)
async def test_a_file_that_a_model_names_is_not_deleted(api: Api, uri: str) -> None:
    await upload(api, *FILES)
    model = (await api.call("models.create", {"name": "m", "uri": uri}))["id"]
    await api.call("models.make_public", {"ids": [model]})
    assert await remove(api, "/p/i%201.png") == {"deleted": [], "kept": ["/p/i 1.png"]}
    assert await remove(api, "/p/plot.png") == {"deleted": ["/p/plot.png"]}
    assert await kept(api) == [name for name in FILES if name != "/p/plot.png"]

    assert await remove(api, "/p/i%201.png", "?force=1") == {"deleted": ["/p/i 1.png"]}
    assert (await api.raw("DELETE", "/files/p/i%201.png")).status_code == 404


async def test_a_file_that_its_task_names_is_not_deleted(api: Api) -> None:
    task = await make(api)
    artifact, model = (f"/p/a run.{task}/{name}" for name in ("artifacts/a", "models/m"))
    await upload(api, artifact, model)
    of = {"key": "a", "type": "t", "uri": f"http://a.host.of/files/{artifact}"}
    await api.call("tasks.add_or_update_artifacts", {"task": task, "artifacts": [of]})
    made = await api.call("models.create", {"name": "m", "uri": f"http://another.host:80{model}", "task": task})
    for name in (artifact, model):
        assert await remove(api, name) == {"deleted": [], "kept": [name]}

    await api.call("tasks.delete_artifacts", {"task": task, "artifacts": [{"key": "a"}]})
    await api.call("models.delete", {"model": made["id"]}, headers=SDK)
    for name in (artifact, model):
        assert await remove(api, name) == {"deleted": [name]}


@pytest.fixture
async def replacing(api: Api) -> tuple[str, str]:
    """A task and its model, which has the first of two files of weights."""
    task = await make(api)
    await upload(api, *(f"/p/a run.{task}/models/{name}" for name in "ab"))
    uri = url(f"/p/a run.{task}/models/a")
    made = await api.call("models.create", {"name": "m", "uri": uri, "task": task, "ready": False})
    return task, made["id"]


async def later(api: Api) -> None:
    """Some days go by."""
    past = Update(set={"due": from_now(-1)})
    await api.backend.documents.update("replaced_files", {"company": api.company}, past, many=True)
    await api.backend.file_deletions.add_due()


@pytest.mark.parametrize("endpoint", ["models.edit", "models.update_for_task"])
async def test_weights_that_an_upload_has_replaced_go_after_some_days(
    api: Api, replacing: tuple[str, str], endpoint: str
) -> None:
    task, model = replacing
    first, second = (f"/p/a run.{task}/models/{name}" for name in "ab")
    if endpoint == "models.edit":
        await api.call(endpoint, {"model": model, "uri": url(second)})
    else:
        await api.call("tasks.add_or_update_model", {"task": task, "name": "m", "model": model, "type": "output"})
        await api.call(endpoint, {"task": task, "uri": url(second)})
    await api.backend.file_deletions.add_due()
    assert await exist(api, first, second) == [first, second]
    await later(api)
    assert await exist(api, first, second) == [second]


@pytest.mark.parametrize("who", ["another model", "the same", "another host", "an artifact", "a new upload"])
async def test_replaced_weights_stay_if_they_are_needed(api: Api, replacing: tuple[str, str], who: str) -> None:
    task, model = replacing
    first, second = (f"/p/a run.{task}/models/{name}" for name in "ab")
    await api.call("models.edit", {"model": model, "uri": url(second)})
    match who:
        case "another model":
            await api.call("models.create", {"name": "other", "uri": url(first)})
        case "the same":
            await api.call("models.edit", {"model": model, "uri": url(first)})
        case "another host":
            await api.call("models.edit", {"model": model, "uri": f"https://new.host{first}"})
        case "an artifact":
            artifacts = [{"key": "a", "type": "t", "uri": url(first)}]
            await api.call("tasks.add_or_update_artifacts", {"task": task, "artifacts": artifacts})
        case "a new upload":
            await upload(api, first)
    await later(api)
    assert first in await exist(api, first)
    await later(api)
    assert first in await exist(api, first)


async def test_other_files_than_replaced_weights_stay(api: Api, replacing: tuple[str, str]) -> None:
    task, model = replacing
    first, second = (f"/p/a run.{task}/models/{name}" for name in "ab")
    other = (await api.call("models.create", {"name": "no task", "uri": url(first), "ready": False}))["id"]
    for change in (
        {"model": model, "uri": f"https://new.host{first}"},
        {"model": model, "uri": "http://testserver:8081/uploading_file"},
        {"model": other, "uri": url(second)},
    ):
        await api.call("models.edit", change)
    await api.call("models.edit", {"model": model, "uri": url(first)})
    await api.call("models.set_ready", {"model": model, "publish_task": False})
    await api.call("models.edit", {"model": model, "uri": url(second)})
    assert await api.backend.documents.find("replaced_files", {"company": api.company}) == []

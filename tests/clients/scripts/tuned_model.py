"""A model that is made of another one, looked for, published and archived. Prints what it saw as JSON."""

import json
from pathlib import Path

from clearml import InputModel, Model, OutputModel, Task

PROJECT = "flows/models"


def begin(name):
    return Task.init(PROJECT, name, output_uri=True, auto_connect_frameworks=False, auto_resource_monitoring=False)


def save(model, text):
    Path("weights.bin").write_text(text)
    model.update_weights("weights.bin", auto_delete_file=False, async_enable=False)


def names(**how):
    return sorted(one.name for one in Model.query_models(project_name=PROJECT, **how))


task = begin("makes it")
base = OutputModel(task, name="base", framework="PyTorch", tags=["vision", "old"], label_enumeration={"cat": 1})
save(base, "first weights")
task.close()

task = begin("tunes it")
origin = InputModel(base.id)
task.connect(origin)
tuned = OutputModel(task, name="tuned", framework="PyTorch", tags=["vision", "new"], config_dict={"layers": [1, 2]})
save(tuned, Path(origin.get_local_copy()).read_text() + ", tuned")
tuned.set_metadata("stage", "gold")
tuned.report_single_value("accuracy", 0.9)
task.close()

task, again = Task.get_task(task.id), Model(tuned.id)
seen = {
    "chain": [[one.name for one in task.models[kind]] for kind in ("input", "output")],
    "made_by": [Task.get_task(again.original_task).name, Task.get_task(task.models["input"][0].original_task).name],
    "weights": Path(again.get_local_copy()).read_text(),
    "design": again.config_dict,
    "labels": Model(base.id).labels,
    "found": {
        "all": names(),
        "name": names(model_name="tuned"),
        "all tags": names(tags=["__$all", "vision", "new"]),
        "not tag": names(tags=["-old"]),
        "metadata": names(metadata={"stage": "gold"}),
        "published": names(only_published=True),
        "newest": names(max_results=1),
    },
}
again.publish()
Model(base.id).archive()
seen["published"] = [names(only_published=True), Model(tuned.id).published]
seen["archived"] = [names(), names(include_archived=True)]
Model(base.id).unarchive()
seen["unarchived"] = names()
print(json.dumps(seen))

"""A dataset of two versions, a squashed one, and an alias of one in a run. Prints what each holds as JSON."""

import json
from pathlib import Path

from clearml import Dataset, Task

PROJECT, NAME = "flows/data", "cats"


def folder_of(name, files):
    for path, text in files.items():
        file = Path(name) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return name


def content(dataset):
    copy = Path(dataset.get_local_copy())
    return {str(file.relative_to(copy)): file.read_text() for file in copy.rglob("*") if file.is_file()}


def versions():
    return {one["version"]: str(one["status"]) for one in Dataset.list_datasets(PROJECT, partial_name=f"^{NAME}$")}


def latest(**how):
    return Dataset.get(dataset_project=PROJECT, dataset_name=NAME, **how)


first = Dataset.create(dataset_project=PROJECT, dataset_name=NAME, dataset_tags=["small"], description="of cats")
first.add_files(folder_of("first", {"kept.txt": "kept", "changed.txt": "old", "in/removed.txt": "removed"}))
first.upload()
first.finalize()
second = Dataset.create(dataset_project=PROJECT, dataset_name=NAME, parent_datasets=[first])
second.add_files(folder_of("second", {"changed.txt": "new", "in/added.txt": "added"}))
second.remove_files("in/removed.txt")
second.finalize(auto_upload=True)
seen = {
    "versions": versions(),
    "first": content(latest(dataset_version="1.0.0")),
    "second": content(latest()),
    "changes": [latest().list_added_files(), latest().list_modified_files(), latest().list_removed_files()],
    "parents": latest().get_dependency_graph()[second.id] == [first.id],
    "tagged": latest(dataset_tags=["small"]).id == first.id,
}

squashed = Dataset.squash("all cats", dataset_ids=[second.id])
seen["squashed"] = content(Dataset.get(dataset_id=squashed.id))
seen["squashed_parents"] = Dataset.get(dataset_id=squashed.id).get_dependency_graph()[squashed.id]

task = Task.init("flows", "uses data", auto_connect_frameworks=False, auto_resource_monitoring=False)
seen["alias"] = latest(alias="animals").id == second.id
task.close()
seen["logged"] = Task.get_task(task.id).get_parameter("Datasets/animals") == second.id

Dataset.delete(dataset_project=PROJECT, dataset_name=NAME, dataset_version="1.0.0")  # refused: the second one needs it
seen["refused"] = versions()
Dataset.delete(dataset_project=PROJECT, dataset_name=NAME, entire_dataset=True, force=True)
Dataset.delete(dataset_id=squashed.id)
seen["deleted"] = Dataset.list_datasets(PROJECT)
print(json.dumps(seen))

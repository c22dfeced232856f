"""A run, and its edited clone as an agent would run it: both connect the same objects. Prints what they got as JSON."""

import dataclasses
import json
from pathlib import Path

from clearml import Task


@dataclasses.dataclass
class Optimizer:
    name: str = "sgd"
    momentum: float = 0.9


def run():
    """Connect one of each, and say what the code works with then."""
    task = Task.init("flows", "connected", auto_connect_frameworks=False, auto_resource_monitoring=False)
    Path("network.txt").write_text("depth = 3")
    optimizer = Optimizer()
    task.connect(optimizer, name="Optimizer")
    seen = {
        "id": task.id,
        "nested": dict(task.connect({"lr": 0.1, "net": {"depth": 3, "sizes": [1, 2]}})),
        "object": dataclasses.asdict(optimizer),
        "configuration": dict(task.connect_configuration({"layers": {"first": 1}}, name="layers")),
        "file": Path(task.connect_configuration("network.txt", name="network")).read_text(),
        "labels": task.connect_label_enumeration({"cat": 1}),
    }
    task.set_comment("a comment")
    task.set_user_properties(owner="me")
    task.close()
    return seen


first = run()
task = Task.get_task(first["id"])
clone = Task.clone(task, name="edited")
clone.set_parameters(
    {
        "General/lr": 0.5,
        "General/net/depth": 5,
        "General/net/sizes": [3],
        "Optimizer/name": "adam",
        "Optimizer/momentum": 0,
    }
)
clone.set_configuration_object("layers", config_dict={"layers": {"first": 2}})
clone.set_configuration_object("network", config_text="depth = 5")
kept = {
    "parameters": task.get_parameters(cast=True),
    "configurations": [task.get_configuration_object_as_dict("layers"), task.get_configuration_object("network")],
    "comment": task.comment,
    "properties": task.get_user_properties(value_only=True),
}
Task.debug_simulate_remote_task(clone.id)
second = run()
same = second["id"] == clone.id
print(json.dumps({"first": first, "kept": kept, "second": second, "same": same}))

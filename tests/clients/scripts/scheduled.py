"""Runs what is due, and what models, datasets and tasks trigger, each as a function and as a task in a queue.

Prints what was run as JSON.
"""

import faulthandler
import json
import os
import time
from queue import Queue
from threading import Thread

from clearml import Dataset, OutputModel, Task
from clearml.automation import TaskScheduler, TriggerScheduler

faulthandler.dump_traceback_later(170, exit=True)  # says what it waits for in vain
called = {name: Queue() for name in ("due", "model", "dataset", "task")}


def clones(name):
    """The tasks that were put into the queue in a project of that name, as soon as there is one."""
    while not (found := Task.get_tasks(project_name=f"flows/{name}", task_filter={"status": ["queued"]})):
        time.sleep(0.2)
    return [[one.get_parameter("General/of"), list(one.get_tags())] for one in found]


template = Task.create("flows", "what is to be run")
template.set_parameters({"General/of": "nothing"})
task = Task.init("flows", "a scheduler", auto_connect_frameworks=False, auto_resource_monitoring=False)

scheduler = TaskScheduler()
due = {"execute_immediately": True, "recurring": False, "day": 1}
scheduler.add_task(schedule_function=lambda: called["due"].put(True), name="a function", **due)
scheduler.add_task(
    template.id,
    queue="default",
    name="a task",
    target_project="flows/due",
    task_parameters={"General/of": "due"},
    **due,
)
Thread(target=scheduler.start, daemon=True).start()

triggers = TriggerScheduler(pooling_frequency_minutes=1 / 120)
triggers.add_model_trigger(
    schedule_function=called["model"].put, name="call of models", trigger_project="flows", trigger_on_publish=True
)
triggers.add_model_trigger(
    template.id,
    "default",
    name="task of models",
    trigger_project="flows",
    trigger_on_publish=True,
    target_project="flows/triggered",
    task_parameters={"General/of": "${model.id}"},
)
triggers.add_dataset_trigger(schedule_function=called["dataset"].put, name="call of datasets", trigger_name="new")
triggers.add_task_trigger(
    schedule_function=called["task"].put,
    name="call of tasks",
    trigger_project="flows",
    trigger_on_metric="loss",
    trigger_on_variant="train",
    trigger_on_threshold=0.5,
    trigger_on_sign="min",
)
Thread(target=triggers.start, daemon=True).start()
while not all(trigger.last_update for trigger in triggers.get_triggers()):
    time.sleep(0.05)  # what was before its first look triggers nothing

model = OutputModel(task, name="a model")
model.update_weights(register_uri="file:///weights.bin")
model.publish()
dataset = Dataset.create(dataset_project="flows", dataset_name="new")
dataset.finalize(auto_upload=True)
task.get_logger().report_scalar("loss", "train", iteration=0, value=0.25)
task.flush(wait_for_uploads=True)
seen = {
    "function_due": called["due"].get(),
    "task_due": clones("due"),
    "model": called["model"].get() == model.id,
    "dataset": called["dataset"].get() == dataset.id,
    "task": called["task"].get() == task.id,
    "task_of_model": [[of == model.id, tags] for of, tags in clones("triggered")],
}
print(f"\n{json.dumps(seen)}", flush=True)
os._exit(0)  # the schedulers never end

"""A run that is told to stop, and saves a checkpoint before it does. Prints its id."""

import json
import time

from clearml import OutputModel, Task

task = Task.init(project_name="aborted", task_name="by hand", output_uri=True, auto_resource_monitoring=False)
model = OutputModel(task=task, name="checkpoint")


def save() -> None:
    with open("checkpoint.bin", "wb") as file:
        file.write(b"weights")
    model.update_weights("checkpoint.bin", auto_delete_file=False, async_enable=False)
    task.set_parameter("General/aborted", True)


task.register_abort_callback(save, callback_execution_timeout=60)
print(json.dumps({"task": task.id}), flush=True)
task.stop_request()
time.sleep(600)

"""Uploads pictures, artifacts and models, and goes on whatever is refused. Prints the task's artifacts as JSON."""

import contextlib
import json
import os

import numpy
from clearml import OutputModel, Task

task = Task.init(
    "examples/left over",
    "left",
    reuse_last_task_id=False,
    auto_connect_frameworks=False,
    auto_resource_monitoring=False,
    output_uri=True,
)
LARGE = {"text": "x" * 300_000}
for number in range(3):
    picture = numpy.full((20, 20, 3), number, numpy.uint8)
    task.get_logger().report_image("picture", f"series {number}", iteration=0, image=picture)
task.flush(wait_for_uploads=True)
with contextlib.suppress(Exception):
    task.upload_artifact("waited for", LARGE, wait_on_upload=True)
task.upload_artifact("named", LARGE)
with open("weights.bin", "wb") as file:
    file.write(os.urandom(300_000))
with contextlib.suppress(Exception):
    OutputModel(task=task, name="waited for").update_weights("weights.bin", auto_delete_file=False, async_enable=False)
OutputModel(task=task, name="later").update_weights("weights.bin", auto_delete_file=False)
task.flush(wait_for_uploads=True)
task.close()
artifacts = Task.get_task(task.id).data.execution.artifacts
print(json.dumps({"task": task.id, "artifacts": [{"key": one.key} for one in artifacts]}))

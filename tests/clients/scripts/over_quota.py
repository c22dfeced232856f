"""Reports ten series and uploads an artifact, and goes on whatever is refused. Prints what was raised as JSON."""

import json

from clearml import Task

task = Task.init(
    "examples/over quota",
    "over",
    reuse_last_task_id=False,
    auto_connect_frameworks=False,
    auto_resource_monitoring=False,
)
print(json.dumps({"started": task.id}), flush=True)
for number in range(10):
    task.get_logger().report_scalar("loss", f"series {number}", iteration=0, value=number)
task.flush(wait_for_uploads=True)
try:
    stored, raised = task.upload_artifact("large", {"text": "x" * 300_000}, wait_on_upload=True), None
except Exception as error:
    stored, raised = False, f"{type(error).__name__}: {error}"
task.close()
print(json.dumps({"task": task.id, "stored": stored, "raised": raised}))

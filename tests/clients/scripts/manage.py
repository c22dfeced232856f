"""Clones, enqueues, dequeues, resets and deletes a task through the SDK. Prints what it saw as JSON."""

import json
import sys

from clearml import Task

source = Task.get_task(task_id=sys.argv[1])
clone = Task.clone(source_task=source, name="a clone", comment="cloned")
seen = {
    "clone": clone.id,
    "clone_status": str(clone.status),
    "clone_parameters": clone.get_parameters(),
    "clone_scalars": clone.get_reported_scalars(),
    "parent": clone.parent,
}
clone.set_parameters({"Args/lr": 0.5})
Task.enqueue(clone, queue_name="default")
clone.reload()
seen["queued"] = str(clone.status)
Task.dequeue(clone)
clone.reload()
seen["dequeued"] = str(clone.status)
seen["lr"] = clone.get_parameter("Args/lr")
clone.mark_started()
clone.mark_completed()
seen["completed"] = str(clone.status)
clone.reset(force=True)
clone.reload()
seen["reset"] = str(clone.status)
seen["clone_deleted"] = bool(clone.delete())
seen["source_deleted"] = bool(
    source.delete(delete_artifacts_and_models=True, skip_models_used_by_other_tasks=True, raise_on_error=True)
)
seen["after"] = Task.query_tasks(project_name="examples/first steps")
print(json.dumps(seen, default=str))

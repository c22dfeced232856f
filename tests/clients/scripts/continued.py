"""A run that goes on: by its id, as the last one, from a chosen iteration, and beyond an offset. Prints it as JSON."""

import json

from clearml import Task


def run(part, offset=0, **how):
    """Report three points, which count from zero in each part."""
    task = Task.init("flows", "continued", auto_connect_frameworks=False, auto_resource_monitoring=False, **how)
    if offset:
        task.set_initial_iteration(offset)
    for iteration in range(3):
        task.get_logger().report_scalar("loss", "train", iteration=iteration, value=10 * part + iteration)
    print(f"console of part {part}")
    task.close()
    return task.id, task.get_initial_iteration()


first, _ = run(0, reuse_last_task_id=False)
parts = [
    run(1, continue_last_task=first),
    run(2, continue_last_task=True),
    run(3, reuse_last_task_id=first, continue_last_task=100),
    run(4, reuse_last_task_id=first, continue_last_task=True, offset=200),
]
task = Task.get_task(first)
seen = {
    "same": {task for task, _ in parts} == {first},
    "offsets": [offset for _, offset in parts],
    "loss": task.get_reported_scalars()["loss"]["train"],
    "console": "\n".join(task.get_reported_console_output(number_of_reports=100)),
    "last_iteration": task.get_last_iteration(),
    "status": str(task.status),
}
print(json.dumps(seen))

"""Runs in projects whose names have spare slashes and blanks, twice each. Prints where they were put as JSON."""

import json

from clearml import Task


def run(name):
    task = Task.init(
        name, "run", reuse_last_task_id=False, auto_connect_frameworks=False, auto_resource_monitoring=False
    )
    task.close()
    return task.project


names = ("/slashes/x", "slashes//y", "slashes/z/", "slashes / w")
first, second = ([run(name) for name in names] for _ in range(2))
task = Task.create(project_name="slashes", task_name="to move")
moved = task.move_to_project(new_project_name="/moved//there/")
found = {name: len(Task.get_tasks(project_name=name, task_name="run")) for name in names}
print(
    json.dumps(
        {
            "projects": [Task.get_task(task_name="run", project_name=name).get_project_name() for name in names],
            "same": first == second,
            "moved": [moved, Task.get_task(task.id).get_project_name()],
            "found": list(found.values()),
        }
    )
)

"""Makes the tasks that an agent shall run, of for_agent.py, and puts them into a queue. Prints their ids as JSON."""

import json
import sys
from pathlib import Path

from clearml import Task

script = Path(__file__).with_name("for_agent.py")
Path(script.name).write_text(script.read_text())
first = Task.create(
    project_name="agents",
    task_name="to its end",
    script=script.name,
    packages=[],
    argparse_args=[("wait", "0")],
    add_task_init_call=False,
)
second = Task.clone(first, name="to be stopped")
second.set_parameter("Args/wait", 1)
for task in (first, second):
    Task.enqueue(task, queue_name=sys.argv[1])
print(json.dumps({"ended": first.id, "stopped": second.id}))

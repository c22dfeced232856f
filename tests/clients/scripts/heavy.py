"""Reports many scalars and console lines as fast as it can. Arguments: scalars, lines. Prints the task id as JSON."""

import json
import sys
import time

from clearml import Task

scalars, lines = int(sys.argv[1]), int(sys.argv[2])
task = Task.init(
    "examples/heavy", "heavy", reuse_last_task_id=False, auto_connect_frameworks=False, auto_resource_monitoring=False
)
print(json.dumps({"started": task.id}), flush=True)
logger = task.get_logger()
every = max(1, scalars // lines)
for number in range(scalars):
    logger.report_scalar(f"metric {number % 5}", "series", iteration=number // 5, value=number)
    if number % every == 0:
        print(f"heavy line {number // every}")
    if number % 1000 == 0:
        sys.stderr.write(f"progress {number}\n")
        sys.stderr.flush()
before = time.monotonic()
task.close()
print(json.dumps({"task": task.id, "close_seconds": time.monotonic() - before}))

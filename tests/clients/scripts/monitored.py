"""One node of a job whose machines are monitored: `monitored.py [RANK]`; the first one makes the task.

It prints the task's id, then reports two GPUs as the SDK names them, until it is killed.
"""

import itertools
import json
import logging
import os
import sys
import time

from clearml import Task

rank = int(sys.argv[1]) if len(sys.argv) > 1 else 0
task = Task.init(
    project_name="monitored jobs",
    task_name="a job",
    auto_connect_frameworks=False,
    auto_resource_monitoring={
        "report_frequency_sec": 1.0,
        "first_report_sec": 1.0,
        "wait_for_first_iteration_to_start_sec": 1.0,
    },
)
assert (rank > 0) == ("CLEARML_TASK_ID" in os.environ)
print(json.dumps({"task": task.id, "project": task.project}), flush=True)
logger = task.get_logger()
title = ":monitor:gpu" + (f":rank{rank}" if rank else "")
for second in itertools.count():
    for number in range(2):
        logger.report_scalar(title, f"gpu_{number}_utilization", 10.0 * rank + 30 * number + second, second)
        logger.report_scalar(title, f"gpu_{number}_mem_usage", 25.0 + 50 * number, second)
        logger.report_scalar(title, f"gpu_{number}_mem_used_gb", 20.0 + 40 * number, second)
    # What is printed by a node that did not make the task is its agent's to report; warnings come by themselves.
    for line in range(60):  # of few, the SDK would send none for half a minute
        text = f"node {rank} at second {second}: größer {line}"
        logger.report_text(text, level=logging.WARNING, print_console=False)
    time.sleep(1)

"""What an agent runs: prints and reports; with the argument `wait` it then goes on until it is stopped."""

import argparse
import time

from clearml import Task

parser = argparse.ArgumentParser()
parser.add_argument("--wait", type=int, default=0)
task = Task.init(auto_connect_frameworks=False, auto_resource_monitoring=False)
wait = parser.parse_args().wait
print(f"hello from an agent's task, wait={wait}", flush=True)
for iteration in range(5):
    task.get_logger().report_scalar("loss", "train", 1 / (iteration + 1), iteration)
task.flush(wait_for_uploads=True)
while wait:
    time.sleep(0.1)
print("the end", flush=True)

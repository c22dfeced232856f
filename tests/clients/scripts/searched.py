"""What a search runs: reports how far its parameter is from the best one, which is 2."""

from clearml import Task

task = Task.init(auto_connect_frameworks=False, auto_resource_monitoring=False)
parameters = task.connect({"x": 0.0})
for iteration in range(3):
    task.get_logger().report_scalar(
        "loss", "train", iteration=iteration, value=abs(parameters["x"] - 2) + 1 - iteration / 4
    )
task.flush(wait_for_uploads=True)

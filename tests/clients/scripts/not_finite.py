"""Reports NaN and infinities as users have to, and reads them back. Prints what came as JSON."""

import json
import math

from clearml import Logger, Task

task = Task.init("examples/diverged", "diverged", auto_connect_frameworks=False, auto_resource_monitoring=False)
logger = task.get_logger()
Logger.set_reporting_nan_value(math.nan)
for iteration, value in enumerate([0.5, math.nan, 0.25]):
    logger.report_scalar("loss", "train", iteration=iteration, value=value)
for variant, infinity in (("up", math.inf), ("down", -math.inf)):
    Logger.set_reporting_inf_value(infinity)  # the SDK sends this one for both infinities
    logger.report_scalar("loss", variant, iteration=0, value=infinity)
task.flush(wait_for_uploads=True)
task.close()
scalars = Task.get_task(task.id).get_reported_scalars()["loss"]
print(json.dumps({"task": task.id, "scalars": {variant: [one["x"], one["y"]] for variant, one in scalars.items()}}))

"""A run with something for each page: `browsed.py NUMBER`. Prints, as its last line, its ids and address as JSON."""

import json
import sys

import numpy as np
from clearml import OutputModel, Task

number = sys.argv[1]
task = Task.init(
    "examples/browsed",
    f"run {number}",
    tags=["nightly"],
    output_uri=True,
    reuse_last_task_id=False,
    auto_connect_frameworks=False,
    auto_resource_monitoring=False,
)
task.connect({"lr": 0.1, "layer.size": 64}, name="Args")
task.connect_configuration({"depth": number}, name="network")
logger = task.get_logger()
for iteration in range(5):
    logger.report_scalar("loss", "train", iteration=iteration, value=1 / (iteration + 1))
    logger.report_scalar("loss", "val", iteration=iteration, value=2 / (iteration + 1))
    logger.report_image("images", "noise", iteration=iteration, image=np.full((4, 4, 3), 40 * iteration, np.uint8))
logger.report_single_value("best", 0.9)
logger.report_confusion_matrix("confusion", "c", iteration=1, matrix=np.eye(2))
logger.report_table("table", "t", iteration=1, table_plot=[["a", "b"], [1, 2]])
logger.report_text("\x1b[31ma red line\x1b[0m")
task.upload_artifact("data", artifact_object={"answer": 42}, wait_on_upload=True)
model = OutputModel(task=task, name=f"model {number}", framework="PyTorch", label_enumeration={"cat": 1})
model.update_weights(register_uri="file:///weights.bin")
model.set_metadata("accuracy", "0.9", v_type="float")
model.report_scalar("model metric", "v", value=3.0, iteration=1)
page = task.get_output_log_web_page()
task.close()
print(json.dumps({"task": task.id, "model": model.id, "project": task.project, "page": page}))

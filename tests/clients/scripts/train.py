"""A training run as users write it. Prints, as its last line, what it reported as JSON."""

import json
import tempfile
from pathlib import Path

import numpy as np
from clearml import OutputModel, Task

task = Task.init(
    project_name="examples/first steps",
    task_name="a run",
    tags=["nightly"],
    output_uri=True,
    auto_connect_frameworks=False,
    auto_resource_monitoring={
        "report_frequency_sec": 1.0,
        "first_report_sec": 1.0,
        "wait_for_first_iteration_to_start_sec": 1.0,
    },
)
task.connect({"lr": 0.1, "layer.size": 64, "$cost": "x"}, name="Args")
task.set_comment("a comment")
logger = task.get_logger()
for iteration in range(500):
    logger.report_scalar("loss", "train", iteration=iteration, value=1.0 / (iteration + 1))
    logger.report_scalar("loss", "val", iteration=iteration, value=2.0 / (iteration + 1))
logger.report_single_value("best", 0.95)
logger.report_histogram("weights", "layer 1", iteration=10, values=[1, 2, 3, 2])
logger.report_table("table", "t", iteration=3, table_plot=[["a", "b"], [1, 2]])
logger.report_confusion_matrix("confusion", "c", iteration=3, matrix=np.eye(3))
logger.report_image("images", "random é #1", iteration=2, image=np.full((8, 8, 3), 128, dtype=np.uint8))
for line in range(20):
    print(f"console line {line}")
logger.report_text("reported text")
task.upload_artifact("data", artifact_object={"answer": 42}, wait_on_upload=True)
weights = Path(tempfile.mkdtemp()) / "weights.bin"
weights.write_bytes(b"weights" * 1000)
model = OutputModel(task=task, name="the model", framework="PyTorch", tags=["good"])
model.update_weights(weights_filename=str(weights), auto_delete_file=False)
model.set_metadata("accuracy", "0.9", v_type="float")
model.report_scalar("model metric", "v", value=3.0, iteration=1)
task.flush(wait_for_uploads=True)
task.close()
print(json.dumps({"task": task.id, "model": model.id, "project": task.project}))

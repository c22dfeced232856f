"""A run by an SDK of any version, with models: `any_train.py NAME`. Prints, as its last line, its ids as JSON."""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from clearml import InputModel, Model, OutputModel, Task

name = sys.argv[1]
task = Task.init(
    project_name="any version",
    task_name=name,
    output_uri=True,
    reuse_last_task_id=False,
    auto_connect_frameworks=False,
    auto_resource_monitoring=False,
)
task.add_tags(["nightly"])
task.set_comment("a comment")
task.connect({"lr": 0.1, "layer.size": 64, "$cost": "x"}, name="Args")
task.connect_configuration({"depth": 3}, name="network")
started_from = InputModel.import_model(
    weights_url=f"https://models.example/{name}.bin", name=f"origin of {name}", framework="PyTorch"
)
task.connect(started_from)

logger = task.get_logger()
for iteration in range(20):
    logger.report_scalar("loss", "train", iteration=iteration, value=1.0 / (iteration + 1))
logger.report_histogram("weights", "layer 1", iteration=10, values=[1, 2, 3, 2])
logger.report_confusion_matrix("confusion", "c", iteration=3, matrix=np.eye(3))
logger.report_scatter2d("curve", "roc", iteration=3, scatter=[[0, 0], [1, 1]])
logger.report_image("images", "grey", iteration=2, image=np.full((8, 8, 3), 128, dtype=np.uint8))
if hasattr(logger, "report_single_value"):  # from 1.5 on
    logger.report_single_value("best", 0.95)
print("a console line")
logger.report_text("reported text")
task.upload_artifact("data", artifact_object={"answer": 42}, wait_on_upload=True)
task.upload_artifact("numbers", artifact_object=np.arange(5), wait_on_upload=True)

weights = [Path(tempfile.mkdtemp()) / "weights.bin" for _ in range(2)]
weights[0].write_bytes(b"weights" * 100)
weights[1].write_bytes(b"better!" * 200)
model = OutputModel(task=task, name=f"model of {name}", framework="PyTorch", label_enumeration={"cat": 1, "dog": 2})
for file in weights:
    model.update_weights(weights_filename=str(file), auto_delete_file=False, iteration=19)
    model.wait_for_uploads()  # an upload ends by writing the model as it was when the upload began
model.update_design(config_dict={"layers": [1, 2]})
if hasattr(Model, "set_metadata"):  # from 1.6 on
    Model(model.id).set_metadata("accuracy", "0.9", "float")
task.flush(wait_for_uploads=True)
task.close()
print(json.dumps({"task": task.id, "model": model.id, "origin": started_from.id}))

"""A run recorded offline and imported into the server afterwards. Prints the imported task's id as JSON."""

import json

from clearml import Task

Task.set_offline(True)
task = Task.init("examples/offline", "an offline run", auto_connect_frameworks=False, auto_resource_monitoring=False)
for iteration in range(50):
    task.get_logger().report_scalar("loss", "train", iteration=iteration, value=iteration)
print("offline line")
task.upload_artifact("data", artifact_object={"offline": True}, wait_on_upload=True)
session = task.get_offline_mode_folder()
task.close()
Task.set_offline(False)
imported = Task.import_offline_session(str(session) + ".zip")
task = Task.get_task(task_id=imported)
print(
    json.dumps(
        {
            "task": imported,
            "status": str(task.status),
            "scalars": len(task.get_reported_scalars()["loss"]["train"]["x"]),
            "console": task.get_reported_console_output(number_of_reports=10),
            "artifact": task.artifacts["data"].get(),
        },
        default=str,
    )
)

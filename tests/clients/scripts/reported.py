"""Reports plots, samples and artifacts of several kinds, and reads them back. Prints what came back as JSON."""

import json
from pathlib import Path

import numpy as np
from clearml import StorageManager, Task
from PIL import Image

task = Task.init("flows", "reported", auto_connect_frameworks=False, auto_resource_monitoring=False)
logger = task.get_logger()
logger.report_table("table", "rows", 1, table_plot=[["name", "recall"], ["cat", 0.9]])
logger.report_plotly("plotly", "bars", iteration=2, figure={"data": [{"type": "bar", "y": [1, 2]}], "layout": {}})
logger.report_line_plot("line", series=[{"name": "up", "data": [[0, 0], [1, 1]]}], xaxis="x", yaxis="y", iteration=1)

elsewhere = f"{logger.get_default_upload_destination()}/elsewhere"
logger.set_default_upload_destination(elsewhere)
Path("note.txt").write_text("a note")
for iteration in range(3):
    logger.report_image("images", "grey", iteration, image=np.full((4, 4, 3), 50 * iteration, np.uint8))
logger.report_media("media", "note", 1, local_path="note.txt")

Path("folder/in").mkdir(parents=True)
Path("folder/in/one.txt").write_text("one")
Path("folder/two.txt").write_text("two")
artifacts = {
    "dict": {"answer": 42, "nested": [1, {"a": None}]},
    "text": "some text",
    "array": np.arange(5),
    "picture": Image.new("RGB", (3, 2), (9, 8, 7)),
    "file": "note.txt",
    "folder": "folder",
    "pickled": {1, 2},
}
for name, value in artifacts.items():
    task.upload_artifact(name, value, metadata={"kind": name}, wait_on_upload=True)
task.flush(wait_for_uploads=True)
task.close()


def pixel(path):
    return list(Image.open(path).getpixel((0, 0)))


task = Task.get_task(task.id)
samples = task.get_debug_samples("images", "grey")
[note] = task.get_debug_samples("media", "note")
kept = task.artifacts
folder = Path(kept["folder"].get_local_copy())
seen = {
    "plots": sorted([plot["metric"], plot["variant"], plot["iter"]] for plot in task.get_reported_plots()),
    "images": {one["iter"]: pixel(StorageManager.get_local_copy(one["url"])) for one in samples},
    "elsewhere": all(one["url"].startswith(elsewhere) for one in [*samples, note]),
    "note": Path(StorageManager.get_local_copy(note["url"])).read_text(),
    "types": {name: artifact.type for name, artifact in kept.items()},
    "metadata": kept["dict"].metadata,
    "dict": kept["dict"].get(),
    "text": kept["text"].get(),
    "array": kept["array"].get().tolist(),
    "picture": [list(kept["picture"].get().size), list(kept["picture"].get().getpixel((0, 0)))],
    "file": Path(kept["file"].get_local_copy()).read_text(),
    "folder": {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*.txt")},
    "pickled": sorted(kept["pickled"].get()),
    "hashed": all(artifact.hash and artifact.size for artifact in kept.values()),
}
seen["deleted"] = task.delete_artifacts(["dict", "file"])
seen["left"] = sorted(Task.get_task(task.id).artifacts)
print(json.dumps(seen))

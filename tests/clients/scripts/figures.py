"""Reports one of each kind of plot and media that the SDK knows. Prints the task's id as JSON."""

import json
import math
import tempfile
import wave
from pathlib import Path

import numpy as np
from clearml import Task
from PIL import Image

folder = Path(tempfile.mkdtemp())
task = Task.init(
    project_name="figures", task_name="all kinds", auto_connect_frameworks=False, auto_resource_monitoring=False
)
logger = task.get_logger()
generator = np.random.default_rng(0)
for iteration in (1, 2, 3):
    logger.report_histogram(
        "histogram", "layer", generator.integers(0, 9, 5) + iteration, iteration, xlabels=list("abcde")
    )
logger.report_confusion_matrix(
    "confusion", "matrix", np.array([[9, 1], [2, 8]]), 1, xaxis="predicted", yaxis="true", xlabels=["cat", "dog"]
)
logger.report_table("table", "rows", 1, table_plot=[["name", "recall"], ["cat", 0.9], ["dog", 0.8]])
logger.report_scatter2d("scatter", "2d", np.column_stack([np.arange(9), generator.random(9)]), 1, mode="markers")
logger.report_scatter3d("scatter", "3d", generator.random((20, 3)), 1)
logger.report_surface("surface", "hill", np.outer(np.hanning(12), np.hanning(12)), 1)
logger.report_plotly(
    "violin", "plotly", iteration=1, figure={"data": [{"type": "violin", "y": [1, 2, 2, 3]}], "layout": {}}
)

Image.fromarray(np.full((60, 80, 3), (230, 120, 40), np.uint8)).save(folder / "plot.png")
place = task._get_default_report_storage_uri()
task._reporter.report_image_plot_and_upload("matplotlib", "picture", 1, path=str(folder / "plot.png"), upload_uri=place)
logger.report_image("photos", "cat", 1, image=np.full((60, 80, 3), (40, 120, 230), np.uint8))
with wave.open(str(folder / "tone.wav"), "wb") as tone:
    tone.setnchannels(1)
    tone.setsampwidth(1)
    tone.setframerate(8000)
    tone.writeframes(bytes(128 + int(60 * math.sin(n / 5)) for n in range(8000)))
logger.report_media("sounds", "tone", 1, local_path=str(folder / "tone.wav"))
(folder / "page.html").write_text("<h1>A page</h1><script>document.body.append('its script ran')</script>")
logger.report_media("pages", "report", 1, local_path=str(folder / "page.html"))
task.close()
print(json.dumps({"task": task.id}))

"""A pipeline made of a function by decorators, whose step is a process of its own. Prints what it saw as JSON."""

import json

from clearml import PipelineDecorator, Task


@PipelineDecorator.component(return_values=["doubled"])
def double(value):
    return 2 * value


@PipelineDecorator.pipeline(name="decorated", project="flows", return_value="result", pool_frequency=1 / 300)
def pipeline(value=4):
    return int(double(value)) + 1


PipelineDecorator.run_locally()
result = pipeline(value=20)
[controller] = Task.get_tasks(task_name="^decorated$", task_filter={"type": ["controller"], "search_hidden": True})
[step] = Task.get_tasks(task_filter={"parent": controller.id, "search_hidden": True})
seen = {
    "result": result,
    "status": str(controller.status),
    "kept": controller.artifacts["result"].get(),
    "parameter": controller.get_parameter("Args/value"),
    "step": [step.name, str(step.status), step.get_parameter("return/doubled", cast=True)],
}
print(json.dumps(seen))

"""A pipeline of two steps, run twice; the second run takes the steps of the first. Prints what it saw as JSON."""

import json

from clearml import PipelineController, Task


def numbers(count):
    return list(range(int(count)))


def total(values):
    from clearml import Task

    Task.current_task().get_logger().report_scalar("sum", "of all", iteration=0, value=sum(values))
    return sum(values)


def run():
    pipeline = PipelineController(name="sums", project="flows", pool_frequency=1 / 300)
    pipeline.add_parameter("count", 4)
    pipeline.add_function_step(
        "numbers",
        numbers,
        function_kwargs={"count": "${pipeline.count}"},
        function_return=["values"],
        cache_executed_step=True,
    )
    pipeline.add_function_step(
        "total",
        total,
        function_kwargs={"values": "${numbers.values}"},
        function_return=["total"],
        monitor_metrics=[("sum", "of all")],
        cache_executed_step=True,
    )
    pipeline.start_locally(run_pipeline_steps_locally=True)
    steps = {name: node.executed for name, node in pipeline.get_pipeline_dag().items()}
    controller = Task.get_task(pipeline.id)
    return {
        "controller": controller.id,
        "name": controller.name,
        "project": controller.get_project_name(),
        "status": str(controller.status),
        "version": controller.get_user_properties(value_only=True)["version"],
        "plots": sorted({plot["metric"] for plot in controller.get_reported_plots()}),
        "monitored": controller.get_reported_scalars()["sum"]["of all"]["y"],
        "steps": steps,
        "cached": {name: node.job.is_cached_task() for name, node in pipeline.get_pipeline_dag().items()},
        "total": Task.get_task(steps["total"]).get_parameter("return/total", cast=True),
        "children": sorted(Task.query_tasks(task_filter={"parent": controller.id, "search_hidden": True})),
    }


print(json.dumps({"runs": [run(), run()]}))

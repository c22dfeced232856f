"""Searches the best parameter of searched.py, in three processes at once. Prints what it found as JSON."""

import faulthandler
import json
from pathlib import Path
from threading import Event

from clearml import Task
from clearml.automation import DiscreteParameterRange, GridSearch, HyperParameterOptimizer

faulthandler.dump_traceback_later(170, exit=True)  # says what it waits for in vain
done = Event()


class Grid(GridSearch):
    """Goes on when nothing is left to do, as the optimizer waits for its report otherwise: a quarter of a minute."""

    def process_step(self):
        if not super().process_step():
            done.set()
        return True


script = Path(__file__).with_name("searched.py")
Path(script.name).write_text(script.read_text())
template = Task.create("flows", "template of a search", script=script.name, packages=[], add_task_init_call=False)
template.set_parameters({"General/x": 0})
task = Task.init(
    "flows",
    "a search",
    Task.TaskTypes.optimizer,
    auto_connect_frameworks=False,
    auto_resource_monitoring=False,
)
optimizer = HyperParameterOptimizer(
    template.id,
    [DiscreteParameterRange("General/x", values=[1, 2, 4])],
    objective_metric_title="loss",
    objective_metric_series="train",
    objective_metric_sign="min",
    optimizer_class=Grid,
    max_number_of_concurrent_tasks=3,
    execution_queue="default",
    spawn_project="flows/searched",
    save_top_k_tasks_only=1,
    pool_period_min=1 / 300,
)
optimizer.start_locally()
done.wait()
optimizer.stop()
top = optimizer.get_top_experiments(top_k=3)
seen = {
    "top": [
        [one.get_parameter("General/x"), one.get_project_name(), str(one.status), one.get_archived()] for one in top
    ],
    "details": [
        [one["hyper_parameters"], one["metrics"]["loss/train"]["min_value"]]
        for one in optimizer.get_top_experiments_details(top_k=1)
    ],
    "children_of_the_search": {one.parent for one in top} == {task.id},
}
task.close()
seen["plots"] = sorted({plot["metric"] for plot in Task.get_task(task.id).get_reported_plots()})
print(json.dumps(seen))

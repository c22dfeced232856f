"""Creates, edits, finds, ends, publishes, moves, archives and deletes tasks. Prints what it saw as JSON."""

import json

from clearml import Task

PROJECT = "flows/managed"


def names(**how):
    return sorted(one.name for one in Task.get_tasks(project_name=PROJECT, **how))


template = Task.create(PROJECT, "template", Task.TaskTypes.testing)
template.set_parameters({"Args/lr": 0.1, "General/net/depth": 3})
template.set_comment("a comment")
template.set_user_properties(owner="me", stage={"value": "early", "description": "how far it is", "type": "str"})
clones = [Task.clone(template, name=f"clone {number}", parent=template.id) for number in range(4)]
for number, clone in enumerate(clones):
    clone.set_parameters_as_dict({"Args": {"lr": number}, "General": {"net": {"depth": number}}})
    clone.add_tags(["cloned", f"number {number}"])
queued, failed, stopped, completed = clones
Task.enqueue(queued, queue_name="default")
for task in (failed, stopped, completed):
    task.mark_started()
failed.mark_failed(status_reason="no reason", status_message="it failed")
stopped.mark_stopped(status_message="it was stopped")
completed.mark_completed()
completed.remove_tags(["cloned"])
completed.delete_user_properties(["General/owner"])
seen = {
    "statuses": [str(Task.get_task(clone.id).status) for clone in clones],
    "waiting": Task.get_num_enqueued_tasks("default"),
    "queue": Task.get_task(queued.id).get_executed_queue(return_name=True),
    "failed": Task.get_task(failed.id).get_status_message(),
    "parameters": Task.get_task(completed.id).get_parameters_as_dict(cast=True),
    "properties": Task.get_task(stopped.id).get_user_properties(),
    "comment": Task.get_task(stopped.id).comment,
    "found": {
        "part of the name": names(task_name="clone"),
        "tag": names(tags=["cloned"]),
        "tags": names(tags=["__$all", "cloned", "__$not", "number 1"]),
        "status": names(task_filter={"status": ["failed", "stopped"]}),
        "type": names(task_filter={"type": ["testing"], "parent": template.id}),
        "parameter": names(task_filter={"hyperparams.Args.lr.value": ["2"], "_allow_extra_fields_": True}),
        "text": names(task_filter={"_any_": {"fields": ["name", "comment"], "pattern": "a comment"}}),
    },
    "queried": Task.query_tasks(
        project_name=PROJECT,
        task_name="^clone",
        additional_return_fields=["name", "status", "status_message"],
        task_filter={"order_by": ["-name"], "status": ["failed", "stopped"]},
    ),
}

completed.publish()
stopped.move_to_project(new_project_name="flows/moved")
failed.set_archived(True)
seen["published"] = str(Task.get_task(completed.id).status)
seen["moved"] = Task.get_task(stopped.id).get_project_name()
seen["not_archived"] = names(allow_archived=False)
seen["deleted"] = [bool(queued.delete()), bool(template.delete())]
seen["left"] = names()
print(json.dumps(seen, default=str))

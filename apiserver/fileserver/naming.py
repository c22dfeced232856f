"""Whether a model or a task still names a file, so that it is not to be deleted.

Models of a company are found by the address of the file, as it may be written on any host of the server. Models and
artifacts of the task in whose folder the file lies are found by its path, whatever host they name.
"""

from __future__ import annotations

from collections.abc import Collection

from apiserver.fileserver.addresses import files_of, paths_of, spellings, task_of
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.query import In


async def is_named(documents: DocumentStore, company: str, url: str, hosts: Collection[str]) -> bool:
    """Whether a model or a task names the file at the address `url`. The server is reached by `hosts`."""
    addresses = sorted(spellings(url, hosts))
    if await documents.find_one("models", {"company": company, "uri": In(addresses)}, projection=["id"]):
        return True
    names = files_of([url], hosts)
    owners = {task for task in map(task_of, names) if task}
    return any([names & await _named_by(documents, company, task) for task in owners])


async def _named_by(documents: DocumentStore, company: str, task: str) -> set[str]:
    """The names of the files that a task and its models name."""
    models = await documents.find("models", {"company": company, "task": task}, projection=["uri"])
    found = await documents.find("tasks", {"company": company, "id": task}, projection=["execution.artifacts"])
    artifacts = [one for task in found for one in task.get("execution", {}).get("artifacts", [])]
    return {path for one in (*models, *artifacts) for path in paths_of(one.get("uri") or "")}

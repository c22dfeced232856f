"""Times in the documents of tasks that only the server sets, for imports.

An import says itself when a run was made, mostly long ago. So retention counts the age of its task from IMPORTED.
"""

from __future__ import annotations

#: When an import made the task here, or when events last came to it since, to the hour; other tasks have none.
IMPORTED = "imported"
#: When events of such a task were last deleted or thinned here: the next import knows by it why they are missing.
EVENTS_DELETED = "events_deleted"

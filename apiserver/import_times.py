"""Times in the documents of imported tasks that only the server sets.

An import says itself when a run was made, mostly long ago. So retention counts the age of its task from IMPORTED.
"""

from __future__ import annotations

#: When an import made the task here, or when events last came to it since, to the hour; other tasks have none.
IMPORTED = "imported"

"""Has an SDK's own classes take answers: `any_strict.py FILE`, which holds `[[version, endpoint, data]]`.

Prints, as JSON, how many answers this SDK has a class for, and what it says of those that it refuses.
"""

import importlib
import json
import sys
from pathlib import Path

taken, refused = 0, {}
for version, endpoint, data in json.loads(Path(sys.argv[1]).read_text()):
    service, action = endpoint.split(".")
    module = importlib.import_module(f"clearml.backend_api.services.v{version.replace('.', '_')}.{service}")
    response = getattr(module, action.title().replace("_", "") + "Response", None)
    if response is not None:
        try:
            response.from_dict(data)
            taken += 1
        except (TypeError, ValueError) as error:
            refused[endpoint] = str(error)
print(json.dumps({"taken": taken, "refused": refused}))

"""Removes the first of two models that have the same file, and then the second. Prints what it saw as JSON."""

import json
import sys
from pathlib import Path

from clearml import InputModel, Model

seen = {"first": Model.remove(sys.argv[1], force=True)}
seen["weights"] = Path(InputModel(model_id=sys.argv[2]).get_local_copy(force_download=True)).read_text()
seen["second"] = Model.remove(sys.argv[2], force=True)
print(json.dumps(seen))

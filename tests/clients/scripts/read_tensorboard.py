"""Prints the scalars that TensorBoard's own reader has of a folder, as [tag, step, value]."""

import json
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

found = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
found.Reload()
scalars = ((tag, one) for tag in found.Tags()["scalars"] for one in found.Scalars(tag))
print(json.dumps([[tag, one.step, repr(one.value)] for tag, one in scalars]))

"""The way in for runs that other trackers recorded: TensorBoard, MLflow, W&B, Neptune, and tables.

A source (one module or package each) gives runs, and the parts of a run in their order (`model.py`). `taking.py` brings
them to a server over its API (`server.py`), remembers there how far it has come, and so goes on after an interruption.
Files of others are not trusted: lengths that they declare are compared with what is there before anything is read.
"""

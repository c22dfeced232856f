"""Measures others that do some of the same work: MLflow's tracking server, TensorBoard's data server, and DuckDB.

They are in an environment of their own, `.venv-peers`, which `make bench` installs from `requirements/peers.txt`.
Without it, this section does nothing.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from benchmarks.peers import duckdb, exports, mlflow, pyarrow, tensorboard
from benchmarks.run import Run

ENVIRONMENT = Path(os.environ.get("PEERS_ENVIRONMENT", Path(__file__).parents[2] / ".venv-peers"))


def measure(run: Run) -> None:
    """Measure all peers, and put their values beside the figures."""
    programs = ENVIRONMENT / "bin"
    if not (programs / "python").exists():
        sys.stderr.write(f"the peers are not installed in {ENVIRONMENT}: `make bench` does that\n")
        return
    mlflow.measure(run, programs)
    tensorboard.measure(run, programs)
    duckdb.measure(run, programs)
    pyarrow.measure(run, programs)
    exports.measure(run, programs)

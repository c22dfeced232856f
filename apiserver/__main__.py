"""`python -m apiserver`: the same as the command `apiserver`."""

import sys

from apiserver.cli import main

sys.exit(main())

"""`python -m docs.site [FOLDER]`: build the site into the folder, `site` if none is given.

A link that leads nowhere, inside the site, ends it with exit code 1, and so does an example that fails.
"""

from __future__ import annotations

import sys
from pathlib import Path

from docs.site.build import build
from docs.site.errors import SiteError

if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "site")
    try:
        build(target)
    except SiteError as error:
        sys.exit(f"docs: {error}")
    sys.stdout.write(f"docs: open {target / 'index.html'}\n")

"""`python -m deploy.release FOLDER [--without-accelerator]`: see `.ci/release`."""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from pathlib import Path

from deploy.release import bill, build, provenance

ROOT = Path(__file__).parents[2]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m deploy.release", description="build a release")
    parser.add_argument("folder", type=Path, help="where it goes; the folder must be empty or new")
    parser.add_argument("--without-accelerator", action="store_true", help="without the wheel that takes a compiler")
    options = parser.parse_args()
    folder: Path = options.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise SystemExit(f"{folder} is not empty")
    if not (ROOT / "viewer" / "dist" / "index.html").exists():
        raise SystemExit("there are no pages: `make viewer` builds them")

    commit, time = _git("rev-parse", "HEAD"), int(_git("log", "-1", "--format=%ct"))
    with build.sources(ROOT, time) as source:
        built = build.packages(source, folder, time, accelerator=not options.without_accelerator)
        version = build.version_of(built[0])
        bill.write(folder / f"events-apiserver-{version}.cdx.json", source, version, time)
        files = sorted(folder.iterdir())
        provenance.write(folder / f"events-apiserver-{version}.intoto.json", source, files, commit)
    files = sorted(folder.iterdir())
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
    (folder / "SHA256SUMS").write_text(sums)
    sys.stdout.write(sums)


def _git(*command: str) -> str:
    return subprocess.run(["git", "-C", ROOT, *command], check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()

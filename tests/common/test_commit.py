"""Which commit a clone has: git itself says the same, however it keeps its branches."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from apiserver import __version__
from apiserver.common.commit import checked_out, commit

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")


def git(folder: Path, *command: str) -> str:
    named = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", "-C", str(folder), *named, *command], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "clone"
    folder.mkdir()
    git(folder, "init", "--quiet")
    for n in range(2):
        git(folder, "commit", "--quiet", "--allow-empty", "--message", str(n))
    return folder


def test_a_clone_says_what_is_checked_out(clone: Path, tmp_path: Path) -> None:
    newest, older = git(clone, "rev-parse", "HEAD"), git(clone, "rev-parse", "HEAD~1")
    assert checked_out(clone / ".git") == newest
    git(clone, "worktree", "add", "--quiet", "-b", "other/branch", str(tmp_path / "worktree"), older)
    assert checked_out(tmp_path / "worktree" / ".git") == older
    git(clone, "branch", "in", "HEAD~1")  # its name is the end of another one
    git(clone, "pack-refs", "--all")
    assert not (clone / ".git/refs/heads/main").exists()
    assert (checked_out(clone / ".git"), checked_out(tmp_path / "worktree" / ".git")) == (newest, older)
    git(clone, "checkout", "--quiet", "--detach", "HEAD~1")
    assert checked_out(clone / ".git") == older


def test_without_a_commit_none_is_said(tmp_path: Path) -> None:
    assert checked_out(tmp_path / ".git") == ""
    git(tmp_path, "init", "--quiet")
    assert checked_out(tmp_path / ".git") == ""
    (tmp_path / ".git/HEAD").write_bytes(b"\xff")
    assert checked_out(tmp_path / ".git") == ""


def test_an_archive_says_of_which_commit_it_is(clone: Path) -> None:
    """That is what a release is made of."""
    root = Path(__file__).parents[2]
    (clone / "apiserver/common").mkdir(parents=True)
    for name in (".gitattributes", "apiserver/common/commit.py"):
        shutil.copy(root / name, clone / name)
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message", "the code")
    subprocess.run("git archive HEAD | tar x -C ..", shell=True, cwd=clone, check=True)
    ask = "import commit; print(commit.commit())"
    said = subprocess.run(
        [sys.executable, "-c", ask], cwd=clone.parent / "apiserver/common", capture_output=True, text=True
    )
    assert said.stdout.strip() == git(clone, "rev-parse", "HEAD")


def test_the_command_says_version_and_commit() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "apiserver", "--version"], capture_output=True, text=True, check=True
    ).stdout
    assert said == (f"apiserver {__version__} (commit {commit()})\n" if commit() else f"apiserver {__version__}\n")

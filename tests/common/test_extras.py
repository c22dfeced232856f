"""What is said where an optional package is missing can be done in a clone."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from apiserver.common.extras import installed_by
from apiserver.operating.backup import destinations
from apiserver.server import advice, traces
from apiserver.services.access.oidc import provider
from apiserver.settings.retention_rules import RetentionRule
from apiserver.settings.settings import Settings, SettingsError
from apiserver.tables.formats import Format, missing_extra

ROOT = Path(__file__).parents[2]
EXTRAS = ("imports", "oidc", "parquet", "s3", "traces")


@pytest.mark.parametrize("extra", EXTRAS)
def test_each_extra_can_be_installed_in_both_ways(extra: str) -> None:
    assert installed_by(extra) == f"run 'make {extra}' (or pip install '.[{extra}]') in the clone of the server"
    optional = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names = [re.split("[><=]", one)[0] for one in optional[extra]]
    makefile = (ROOT / "Makefile").read_text()
    assert f"\nEXTRAS = {' '.join(EXTRAS)}\n" in makefile
    assert re.search(r"^\.PHONY:.* \$\(EXTRAS\) ", makefile, re.MULTILINE)
    assert re.search(r"^\$\(EXTRAS\): .*\n\t.*requirements/\$@\.txt$", makefile, re.MULTILINE)
    pinned = (ROOT / "requirements" / f"{extra}.txt").read_text()
    assert all(re.search(rf"^{name}==", pinned, re.MULTILINE) for name in names)


def test_nothing_names_a_package_that_no_index_has() -> None:
    found = [*(ROOT / "apiserver").rglob("*.py"), *(ROOT / "docs").rglob("*.md")]
    assert [str(path) for path in found if "pip install 'events-apiserver" in path.read_text("utf-8")] == []


def test_a_setting_whose_package_is_missing_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (advice, provider, destinations, traces):
        monkeypatch.setattr(module, "find_spec", lambda name: None)
    kept = Settings(
        retention=(RetentionRule(("log",), "30 days"),), retention_every=1, retention_archive="/mnt/archive"
    )
    for setting, extra, use in (
        ("oidc_issuer", "oidc", lambda: provider.Provider(Settings(oidc_issuer="https://id.example.org"))),
        ("traces_to", "traces", lambda: traces.Traces(Settings(traces_to="http://127.0.0.1:4318"))),
        ("backup_to", "s3", lambda: advice.require_usable(Settings(backup_to="s3://bucket/prefix"))),
        ("retention_archive", "parquet", lambda: advice.require_usable(kept)),
    ):
        with pytest.raises(SettingsError, match=rf"{setting}: .*'make {extra}'"):
            use()


def test_a_format_whose_package_is_missing_says_how_to_install_it() -> None:
    assert installed_by("parquet") in missing_extra(Format.PARQUET).message


_WITHOUT = """
import sys
for name in ("google.protobuf", "google_crc32c", "yaml"):
    sys.modules[name] = None
from apiserver.transfer.importing.report import ImportFailed
from apiserver.transfer.importing.runs.command import ImportOptions, opened
for source in ("tensorboard", "mlflow", "wandb"):
    try:
        opened(ImportOptions(source, ".", None))
    except ImportFailed as error:
        print(error)
"""


@pytest.mark.test
def test_an_import_whose_package_is_missing_says_how_to_install_it() -> None:
    done = subprocess.run([sys.executable, "-c", _WITHOUT], capture_output=True, text=True, cwd=ROOT, check=True)
    how = f"reading it needs optional packages: {installed_by('imports')}"
    assert done.stdout.splitlines() == [f"{source}: {how}" for source in ("tensorboard", "mlflow", "wandb")]

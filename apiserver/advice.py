"""Finds settings that do nothing, and those that need a package that is missing, so that the start tells of them."""

from __future__ import annotations

from importlib.util import find_spec

from apiserver.extras import installed_by
from apiserver.settings import Settings, SettingsError

#: By a setting, others that do nothing without it.
_ONLY_WITH = {"backup_to": ("backup_every", "backup_keep"), "retention": ("retention_every", "retention_archive")}


def idle(settings: Settings) -> list[str]:
    """The settings that were changed and do nothing, in a sentence each."""
    usual = Settings()
    return [
        f"{name} does nothing without {needed}"
        for needed, names in _ONLY_WITH.items()
        for name in names
        if not getattr(settings, needed) and getattr(settings, name) != getattr(usual, name)
    ]


def require_extras(settings: Settings) -> None:
    """SettingsError if the server itself is to write an archive, and has no package for it."""
    if settings.retention and settings.retention_every and settings.retention_archive and find_spec("arro3") is None:
        raise SettingsError(f"retention_archive: the archive needs an optional package: {installed_by('parquet')}")

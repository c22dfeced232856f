"""Finds settings that do nothing, and those that cannot work, so that the start tells of them."""

from __future__ import annotations

from importlib.util import find_spec

from apiserver.common.extras import installed_by
from apiserver.operating.backup import destinations, storage
from apiserver.settings import retention_rules
from apiserver.settings.settings import EMBEDDED, Settings, SettingsError

#: By a setting, others that do nothing without it.
_ONLY_WITH = {
    "backup_to": ("backup_every", "backup_keep", "backup_check_every"),
    "retention": ("retention_every", "retention_archive"),
    "traces_to": ("traces_trust_clients",),
    "proxy_user_header": ("proxy_sign_out",),
}


def idle(settings: Settings) -> list[str]:
    """The settings that were changed and do nothing, and rules of retention that never count, in a sentence each."""
    usual = Settings()
    sentences = [
        f"{name} does nothing without {needed}"
        for needed, names in _ONLY_WITH.items()
        for name in names
        if not getattr(settings, needed) and getattr(settings, name) != getattr(usual, name)
    ]
    if settings.consistency != usual.consistency and settings.events == EMBEDDED:
        sentences.append("consistency does nothing with the embedded store of events")
    if settings.migrate_at_start and settings.events == settings.documents == EMBEDDED:
        sentences.append("migrate_at_start does nothing with the embedded stores")
    if settings.audit_bytes != usual.audit_bytes and settings.audit != "file":
        sentences.append(f"audit_bytes does nothing with audit = {settings.audit}")
    if settings.retention and not settings.retention_every:
        sentences.append("retention: without retention_every, only the command `apiserver retention` deletes")
    return [*sentences, *retention_rules.shadowed(settings.retention)]


def require_usable(settings: Settings) -> None:
    """SettingsError if the server itself is to write an archive or backups, and cannot: a package is missing, say."""
    if settings.retention and settings.retention_every and settings.retention_archive and find_spec("arro3") is None:
        raise SettingsError(f"retention_archive: the archive needs an optional package: {installed_by('parquet')}")
    if settings.backup_to:
        try:
            destinations.require_usable(settings.backup_to)
            storage.require_elsewhere(settings.backup_to, settings.data)
        except storage.BackupError as error:
            raise SettingsError(f"backup_to: {error}") from None

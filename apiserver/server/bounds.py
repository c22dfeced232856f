"""The limits of a server's parts, together. Those that an operator may set are in `settings.py`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from apiserver.common.answers import AnswerBounds
from apiserver.http.bounds import ConnectionBounds
from apiserver.live.bounds import LiveBounds
from apiserver.operating.audit.log import AuditBounds
from apiserver.operating.backup.bounds import BackupBounds
from apiserver.operating.doctor.scrub import ScrubBounds
from apiserver.operating.retention.bounds import RetentionBounds
from apiserver.services.access.oidc.provider import ProviderBounds
from apiserver.services.bounds import CallBounds
from apiserver.services.events.last_metrics import LastMetricsBounds


@dataclass(frozen=True, slots=True)
class Bounds:
    """What each part of a server is given, when `create_app` puts it together."""

    answers: AnswerBounds = field(default_factory=AnswerBounds)
    audit: AuditBounds = field(default_factory=AuditBounds)
    backup: BackupBounds = field(default_factory=BackupBounds)
    calls: CallBounds = field(default_factory=CallBounds)
    connections: ConnectionBounds = field(default_factory=ConnectionBounds)
    last_metrics: LastMetricsBounds = field(default_factory=LastMetricsBounds)
    live: LiveBounds = field(default_factory=LiveBounds)
    provider: ProviderBounds = field(default_factory=ProviderBounds)
    retention: RetentionBounds = field(default_factory=RetentionBounds)
    scrub: ScrubBounds = field(default_factory=ScrubBounds)
    clock: Callable[[], float] = time.monotonic
    """By this clock, failed attempts to log in, callers and usages are forgotten, and quotas measure rates."""

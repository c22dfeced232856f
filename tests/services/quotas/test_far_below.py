"""A batch that is far below all bounds is counted at once, and counts as if it had been looked at closely."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest

from apiserver.common.errors import Refusal
from apiserver.events.ingest import Ingest, ingest_lines
from apiserver.events.model import Owner
from apiserver.services.quotas.quotas import Quotas
from apiserver.settings.values import QUOTAS_OF, Quota
from benchmarks.bodies import log_lines, log_text, scalar_lines
from tests.harness import running_api

pytestmark = pytest.mark.anyio

COMPANY = "d1e5c0a8f00d4e0ab1e0c0ffee000001"
TASKS = ("t1", "t2", "t3")
DOCUMENTS = {
    Owner(COMPANY, task): {"id": task, "project": f"p{n % 2}", "user": f"u{n // 2}"} for n, task in enumerate(TASKS)
}


def image_line(task: str, number: int) -> bytes:
    image = {"type": "training_debug_image", "task": task, "iter": 0, "metric": "i", "variant": str(number)}
    return json.dumps({**image, "url": "http://files/a.png"}).encode()


class Close(Quotas):
    """Looks at each batch closely."""

    def count_at_once(self, *batch: object) -> bool:
        return False


class Both:
    """Gives the same to quotas, and to those that look at each batch closely."""

    def __init__(self, quotas: Quotas, close: Close) -> None:
        self.each = quotas, close

    async def admit(self, body: bytes) -> str:
        """What is said of a batch: that it is taken as far as its series are, or why not."""
        said = []
        for quotas in self.each:
            events: Ingest = ingest_lines(body, company=COMPANY, received=0, worker="")
            try:
                documents = {owner: DOCUMENTS[owner] for owner in events.locked_allowed}
                if not quotas.count_at_once(events.batch, documents):
                    await quotas.admit(events, documents)
                said.append(f"{events.accepted} taken {dict(events.rejects.reasons)}")
            except Refusal as error:
                said.append(f"{error.message} {error.retry_after}")
        assert said[0] == said[1]
        return said[0]

    def have_counted(self) -> None:
        """They agree on what each has, and on how many have most of a bound."""
        (mine, closely) = (
            {
                str(one.subject): (one.bytes, one.series, one.bucket and one.bucket.full_at)
                for one in quotas.accounts.of_company(COMPANY).values()
            }
            for quotas in self.each
        )
        assert mine == closely
        assert self.each[0].amounts.near() == self.each[1].amounts.near()


@pytest.mark.test
@pytest.mark.parametrize("seed", range(5))
async def test_batches_count_as_if_each_was_looked_at_closely(tmp_path: Path, seed: int) -> None:
    draw, now = random.Random(seed), [time.monotonic()]
    bounds = tuple(
        Quota(
            of,
            bytes=draw.randrange(5, 50) * 1000,
            series=draw.randrange(10, 60) if seed % 2 else 0,
            events_per_second=draw.choice([5, 50]),
        )
        for of in QUOTAS_OF
    )
    async with running_api(tmp_path) as api:
        parts = api.backend.events, api.backend.documents, api.backend.last_metrics, api.backend.usages
        given = bounds, *parts, api.backend.counters, lambda: now[0]
        both = Both(Quotas(*given), Close(*given))
        said = set()
        for number in range(400):
            task, count = draw.choice(TASKS), draw.choice([1, 1, 5, 20, 100])
            bodies = [(log_lines if draw.random() < 0.2 else scalar_lines)(task, number * 7 % 40, count)]
            if draw.random() < 0.1:
                bodies.append(scalar_lines(draw.choice(TASKS), number, 10))
            if draw.random() < 0.1:
                bodies.append(image_line(task, number))
            answer = await both.admit(b"\n".join(bodies))
            said.add("over" if "Over" in answer else "taken")
            both.have_counted()
            now[0] += draw.choice([0.0, 0.1, 3.0])
            if not number % 100:
                for quotas in both.each:
                    await quotas.amounts.measure(COMPANY)
        assert said == {"over", "taken"}


async def test_batches_whose_series_came_before_are_not_looked_at_closely(tmp_path: Path) -> None:
    """A run reports points of training, of validation, and lines in turns."""
    series = Quota("task", series=1000, bytes=10**9, events_per_second=10**9)
    async with running_api(tmp_path) as api:
        parts = api.backend.events, api.backend.documents, api.backend.last_metrics, api.backend.usages
        quotas = Quotas((series,), *parts, api.backend.counters)
        looked_at = 0

        async def send(*bodies: bytes) -> None:
            nonlocal looked_at
            events = ingest_lines(b"\n".join(bodies), company=COMPANY, received=0, worker="")
            # The document is read anew, as from a store that servers share.
            documents = {owner: dict(DOCUMENTS[owner]) for owner in events.locked_allowed}
            if not quotas.count_at_once(events.batch, documents):
                looked_at += 1
                await quotas.admit(events, documents)

        for number in range(10):
            for body in (scalar_lines("t1", 0, 5), scalar_lines("t1", 5, 10), log_lines("t1", number, 3)):
                await send(body)
        assert looked_at == 5  # each of them until none of its series is new
        (account,) = quotas.accounts.of_company(COMPANY).values()
        assert account.series == 15
        assert account.bytes == 10 * (15 * 24 + 3 * 16) + sum(
            len(log_text(m)) for n in range(10) for m in range(n, n + 3)
        )
        for number in (1, 1, 2):  # beside points of series that came before
            await send(scalar_lines("t1", 0, 5), image_line("t1", number))
        assert account.series == 17

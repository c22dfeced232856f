"""Lists and maps of every endpoint, as large as the schema allows and one beyond it, of a user.

Of fields of an endpoint with the same schema, the first is tried. What is beyond a bound is refused before the endpoint
sees it, so what that costs depends on the schema of the field alone: of all endpoints, the first field with a schema is
tried. Models and reports have the bounds of tasks and projects, and are left to `make longer`. The long form tries all
fields, and has the bounds of texts, names and depths, too. That each endpoint refuses what is beyond each bound is
tested in `tests/services/test_limits.py`.
"""

from __future__ import annotations

import json

import orjson
import pytest

from tests.hostile.conftest import LONG
from tests.hostile.target import OF_USERS, Target
from tests.longer import beyond
from tests.services.generated import ENDPOINTS
from tests.services.largest import Case, all_cases

SERVICES = sorted({endpoint.name.partition(".")[0] for endpoint in ENDPOINTS})
#: Of what is as large as allowed: done, refused by the handler, or told to come back.
ANSWERS = {200, 400, 429, 503}
#: What is alike to a service that is tried.
ALIKE = {"models", "reports"}
OF_LISTS = frozenset({"maxItems", "maxProperties", "maxValues"})


def cases_of(service: str, target: Target) -> list[Case]:
    """The bounds of a service's newest versions, where fields that name things name a task that is there.

    Those of endpoints that read come first: later they would read all that the others have stored.
    """
    ids = {"task": target.task}
    cases = [case for case in all_cases(ids) if case.endpoint.name.partition(".")[0] == service]
    newest = {case.endpoint.name: case.endpoint.version for case in cases}
    cases = [case for case in cases if newest[case.endpoint.name] == case.endpoint.version]
    if not LONG:
        lists = [case for case in cases if case.keyword in OF_LISTS]
        cases = [*{(case.endpoint.name, *bound_of(case)): case for case in reversed(lists)}.values()]
    return sorted(cases, key=lambda case: not case.endpoint.reads)


def bound_of(case: Case) -> tuple[str, str]:
    """The schema of the field, and which of its bounds."""
    return json.dumps(case.place.schema), case.keyword


@pytest.mark.parametrize("service", SERVICES if LONG else beyond({*SERVICES} - ALIKE, SERVICES))
def test_the_largest_and_more(target: Target, service: str) -> None:
    refused = set[tuple[str, str]]()
    with target.attacked(OF_USERS):
        for case in cases_of(service, target):
            path = f"/v{case.endpoint.version}/{case.endpoint.name}"
            beyond = case.beyond() if LONG or bound_of(case) not in refused else None
            refused.add(bound_of(case))
            for request, answers in ((case.largest(), ANSWERS), (beyond, {400})):
                if request is not None:
                    body = orjson.dumps(request)
                    status = target.send(path, body, {"Content-Type": "application/json"}, known=True)
                    assert status in answers or (status == 413 and len(body) > 16 * 2**20), str(case)

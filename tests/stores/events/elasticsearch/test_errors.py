"""What errors of Elasticsearch mean to the store."""

from __future__ import annotations

import pytest
from elastic_transport import ApiResponseMeta, ConnectionError, ConnectionTimeout, HttpHeaders, NodeConfig
from elasticsearch import ApiError

from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.elasticsearch.errors import errors


def api_error(status: int, type: str) -> ApiError:
    meta = ApiResponseMeta(status, "1.1", HttpHeaders(), 0.1, NodeConfig("http", "127.0.0.1", 9200))
    return ApiError(type, meta, {"error": {"type": type, "reason": "because"}})


@pytest.mark.parametrize(
    ("error", "overloaded", "retry_after"),
    [
        (ConnectionError("refused"), False, 5),
        (ConnectionTimeout("late"), False, 5),
        (api_error(429, "es_rejected_execution_exception"), True, 1),
        (api_error(429, "cluster_block_exception"), False, 30),
        (api_error(403, "cluster_block_exception"), False, 30),
        (api_error(503, "search_phase_execution_exception"), False, 5),
        (api_error(401, "security_exception"), False, 5),
        (api_error(400, "parsing_exception"), False, 5),
    ],
)
@pytest.mark.parametrize("writing", [False, True])
def test_whatever_goes_wrong_may_be_tried_again(
    error: Exception, overloaded: bool, retry_after: int, writing: bool
) -> None:
    with pytest.raises(EventStoreBusy) as told, errors(writing=writing):
        raise error
    assert (told.value.overloaded, told.value.retry_after) == (overloaded, retry_after)
    assert told.value.may_be_kept == writing

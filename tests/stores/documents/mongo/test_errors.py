"""Whatever PyMongo raises leaves as an error of the store."""

from __future__ import annotations

from typing import Any

import pymongo.errors
import pytest
from bson.errors import InvalidDocument as InvalidBson

from apiserver.stores.documents.base import (
    DocumentStoreBusy,
    DocumentStoreError,
    DuplicateDocument,
    InvalidDocument,
    InvalidFilter,
)
from apiserver.stores.documents.mongo.errors import errors

DUPLICATE = "E11000 duplicate key error collection: d.queues index: unique:company,name dup key: { … }"


def refused(code: int, text: str = "why") -> pymongo.errors.OperationFailure:
    return pymongo.errors.OperationFailure(text, code, {"errmsg": text, "code": code})


def bulk(**details: Any) -> pymongo.errors.BulkWriteError:
    return pymongo.errors.BulkWriteError({"writeErrors": [], "writeConcernErrors": [], **details})


@pytest.mark.parametrize(
    ("raised", "expected", "message"),
    [
        (pymongo.errors.ServerSelectionTimeoutError("host:1: refused, Timeout: 3s"), DocumentStoreBusy, "not answer"),
        (pymongo.errors.AutoReconnect("host:1: closed"), DocumentStoreBusy, "not answer"),
        (pymongo.errors.NetworkTimeout("timed out"), DocumentStoreBusy, "not answer"),
        (pymongo.errors.NotPrimaryError("not primary"), DocumentStoreBusy, "not answer"),
        (pymongo.errors.WaitQueueTimeoutError("busy"), DocumentStoreBusy, "not answer"),
        (pymongo.errors.ExecutionTimeout("too long", 50), DocumentStoreBusy, "failed"),
        (pymongo.errors.WTimeoutError("majority", 64), DocumentStoreBusy, "failed"),
        (pymongo.errors.CursorNotFound("gone", 43), DocumentStoreBusy, "failed"),
        (pymongo.errors.InvalidOperation("closed"), DocumentStoreBusy, "failed"),
        (refused(13, "not authorized"), DocumentStoreBusy, "not authorized"),
        (refused(14031, "out of disk space"), DocumentStoreBusy, "disk"),
        (bulk(writeConcernErrors=[{"code": 64, "errmsg": "majority"}]), DocumentStoreBusy, "majority"),
        (
            bulk(writeErrors=[{"code": 11000, "errmsg": DUPLICATE}]),
            DuplicateDocument,
            "queues: .* company, name is there",
        ),
        (refused(11000, DUPLICATE), DuplicateDocument, "same company, name is there"),
        (refused(11000, "E11000 … index: _id_ dup key"), DuplicateDocument, "same id is there"),
        (refused(28, "Cannot create field"), InvalidFilter, "Cannot create"),
        (refused(2, "parallel arrays"), InvalidFilter, "parallel"),
        (refused(10334), InvalidDocument, "16 MB"),
        (refused(15), InvalidDocument, "deep"),
        (pymongo.errors.DocumentTooLarge("too large"), InvalidDocument, "larger than the 16 MB"),
        (InvalidBson("cannot encode"), InvalidDocument, "cannot encode"),
        (OverflowError("8-byte"), InvalidDocument, "64 bits"),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogate"), InvalidDocument, "Unicode"),
        (RecursionError(), InvalidDocument, "deep"),
        (pymongo.errors.ConfigurationError("no such option"), DocumentStoreError, "no such option"),
    ],
)
def test_errors_are_the_stores_own(raised: Exception, expected: type[Exception], message: str) -> None:
    with pytest.raises(expected, match=message) as caught, errors("queues"):
        raise raised
    assert type(caught.value) is expected
    if isinstance(caught.value, DocumentStoreBusy):
        assert caught.value.retry_after >= 1

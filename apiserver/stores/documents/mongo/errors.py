"""Turns PyMongo's errors into the store's own, so that no others leave this engine."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bson.errors import BSONError
from pymongo.errors import (
    BulkWriteError,
    ConfigurationError,
    ConnectionFailure,
    DocumentTooLarge,
    OperationFailure,
    PyMongoError,
)

from apiserver.stores.documents.base import (
    DocumentStoreBusy,
    DocumentStoreError,
    DuplicateDocument,
    InvalidDocument,
    InvalidFilter,
)

log = logging.getLogger(__name__)

RETRY_AFTER = 2
TOO_LARGE = "a document is larger than the 16 MB that MongoDB keeps"

_DUPLICATE = {11000, 11001, 12582}
_OVER_THE_LIMIT = {10334, 17419, 17420}
_TOO_DEEP = {15}
#: BadValue, FailedToParse, TypeMismatch, PathNotViable, ConflictingUpdateOperators, names of fields, ImmutableField.
_MALFORMED = {2, 9, 14, 28, 40, 52, 55, 56, 57, 66, 51024, 51091}
_INDEX = re.compile(r"index: (\S+)")


@contextmanager
def errors(collection: str = "") -> Iterator[None]:
    """Turns errors of PyMongo, and of values that BSON cannot have, inside the block, into the store's own."""
    try:
        yield
    except DocumentTooLarge:
        raise InvalidDocument(TOO_LARGE) from None
    except BSONError as error:
        raise InvalidDocument(f"{collection}: {error}") from None
    except OverflowError:
        raise InvalidDocument("a whole number beyond 64 bits") from None
    except UnicodeEncodeError:
        raise InvalidDocument("text that is not valid Unicode") from None
    except RecursionError:
        raise InvalidDocument("nested too deeply") from None
    except ConnectionFailure as error:
        raise DocumentStoreBusy(f"MongoDB does not answer ({_first(error)})", retry_after=RETRY_AFTER) from error
    except ConfigurationError as error:
        raise DocumentStoreError(f"MongoDB: {_first(error)}") from error
    except BulkWriteError as error:
        details = error.details or {}
        failed = [*details.get("writeErrors", ()), *details.get("writeConcernErrors", ())]
        raise _refused(collection, failed[0] if failed else {}, error) from error
    except OperationFailure as error:
        raise _refused(collection, {"code": error.code, **(error.details or {})}, error) from error
    except PyMongoError as error:
        raise DocumentStoreBusy(f"MongoDB failed ({_first(error)})", retry_after=RETRY_AFTER) from error


def _refused(collection: str, details: dict[str, Any], error: PyMongoError) -> DocumentStoreError:
    """The error for a server's answer. DocumentStoreBusy, unless the request is wrong: the fault may be over soon."""
    code, text = details.get("code"), str(details.get("errmsg") or _first(error))[:300]
    if code in _DUPLICATE:
        return DuplicateDocument(f"{collection}: a document with the same {_fields(text)} is there already")
    if code in _OVER_THE_LIMIT:
        return InvalidDocument(TOO_LARGE)
    if code in _TOO_DEEP:
        return InvalidDocument(f"{collection}: nested too deeply")
    if code in _MALFORMED:
        return InvalidFilter(f"{collection}: {text}")
    log.warning("MongoDB failed: %s", error)
    return DocumentStoreBusy(f"MongoDB failed ({text})", retry_after=RETRY_AFTER)


def _fields(text: str) -> str:
    """The fields of the unique index that an error names (`index: unique:company,name`)."""
    found = _INDEX.search(text)
    name = found[1].rpartition(":")[2] if found else ""
    return "id" if name in ("", "_id_") else name.replace(",", ", ")


def _first(error: Exception) -> str:
    """The beginning of an error's message, without the time limits and topology that follow."""
    return re.split(r",| \(configured", str(error))[0][:200]

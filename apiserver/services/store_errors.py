"""The API errors that clients get for the exceptions of the stores."""

from __future__ import annotations

from apiserver.common.errors import Errors, invalid_scroll, not_granted, overloaded, unavailable, validation_error
from apiserver.reading.scroll import InvalidScroll
from apiserver.stores.documents.base import DocumentStoreBusy, InvalidDocument, InvalidFilter
from apiserver.stores.documents.within import OutOfProject
from apiserver.stores.events.base import EventStoreBusy

STORE_ERRORS: Errors = {
    EventStoreBusy: lambda error: (overloaded if error.overloaded else unavailable)(str(error), error.retry_after),
    DocumentStoreBusy: lambda error: unavailable(str(error), error.retry_after),
    OutOfProject: lambda error: not_granted(str(error)),
    InvalidFilter: lambda error: validation_error(str(error)),
    InvalidDocument: lambda error: validation_error(str(error)),
    InvalidScroll: lambda error: invalid_scroll(error.scroll_id),
}

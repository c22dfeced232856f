"""Traces: a span of OpenTelemetry for each request, and one for each call of a store within it.

A span says which endpoint or pattern of a path was called, for which company, and how it was answered: never what a
client sent, nor ids of tasks, users or keys. Spans are sent by a thread, in batches, and are dropped if nobody takes
them. The packages are optional, and imported only if the setting `traces_to` asks for traces.

A client may name the trace that its request belongs to. Whether the request is sampled is decided here, because a
client that decides could have each of its requests sent to the collector.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import wraps
from importlib.util import find_spec
from inspect import getmembers, iscoroutinefunction
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from apiserver import __version__
from apiserver.common.extras import installed_by
from apiserver.rpc.auth import noted_caller
from apiserver.rpc.dispatch import ANSWERED_AS
from apiserver.settings.settings import Settings, SettingsError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
    from opentelemetry.sdk.trace.sampling import Sampler
    from opentelemetry.trace import Span

#: Where collectors take traces, if the setting names only a host.
_PATH = "/v1/traces"
#: Seconds that a collector has for a batch of spans, and for the last ones of a server that stops.
_SECONDS, _LAST_SECONDS = 5, 3
#: Loggers of OpenTelemetry: of its exporter, which warns of each batch that no collector takes, and of its queue, which
#: warns again and again that it is full.
_EXPORTER, _QUEUE = "opentelemetry.exporter.otlp.proto.http.trace_exporter", "opentelemetry.sdk._shared_internal"
#: The log shows so many characters of the reason why OpenTelemetry could not send spans.
_REASON = 150
#: The header that names the trace of a request, and its length. What vendors add in `tracestate` is not read: it may be
#: long, and goes nowhere.
_PARENT, _PARENT_LENGTH = b"traceparent", 55
#: Methods of requests that spans name.
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
#: Methods of stores that are no calls for a request.
_NOT_CALLS = ("open", "close", "check")

log = logging.getLogger(__name__)


class Traces:
    """Makes and sends the spans of a server. SettingsError without the optional packages."""

    def __init__(self, settings: Settings, *, seconds: float = _SECONDS, last_seconds: float = _LAST_SECONDS) -> None:
        """The collector may take so many `seconds` for spans, and `last_seconds` for the last ones."""
        self._last_seconds = last_seconds
        if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
            raise SettingsError(f"traces_to: traces need optional packages: {installed_by('traces')}")
        from opentelemetry import trace
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        address = settings.traces_to if urlsplit(settings.traces_to).path.strip("/") else f"{settings.traces_to}{_PATH}"
        about = Resource.create({"service.name": "events-apiserver", "service.version": __version__})
        # At exit, a provider waits half a minute for a collector that does not answer; `close` does not.
        self._provider = TracerProvider(resource=about, shutdown_on_exit=False)
        if not settings.traces_trust_clients:
            self._provider.sampler = _sampler_of_our_own(self._provider.sampler)
        self._provider.add_span_processor(BatchSpanProcessor(_exporter(address, seconds)))
        self._tracer = self._provider.get_tracer("apiserver", __version__)
        self._trace = trace
        self._extract = TraceContextTextMapPropagator().extract

    def around(self, app: ASGIApp) -> ASGIApp:
        """The app, with a span for each request. It belongs to the client's trace if a `traceparent` names one."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                return await app(scope, receive, send)
            parent = self._extract(_named_trace(scope))
            method: str = scope["method"] if scope["method"] in _METHODS else "_OTHER"
            with self._tracer.start_as_current_span(
                method,
                parent,
                self._trace.SpanKind.SERVER,
                {"http.request.method": method},
                # What an error says may quote what a client sent.
                record_exception=False,
                set_status_on_exception=False,
            ) as span:

                async def sent(message: Message) -> None:
                    if message["type"] == "http.response.start":
                        self._answered(span, message["status"])
                    await send(message)

                try:
                    await app(scope, receive, sent)
                except Exception:  # a fault of the server; refusals are answers
                    span.set_status(self._trace.StatusCode.ERROR)
                    raise
                finally:
                    if name := scope.get(ANSWERED_AS):
                        span.update_name(f"{method} {name}")
                        span.set_attribute("http.route", name)
                    if company := noted_caller(scope).company:
                        span.set_attribute("apiserver.company", company)

        return answer

    def trace_calls(self, store: object, protocol: type, name: str) -> None:
        """Make a span of each call of a method of the protocol, or of those it unites, if it is for a request.

        For example, of a call of `EventStore.add` with the name "events", the span `events add`.
        """
        for method, _ in getmembers(protocol, iscoroutinefunction):
            if method not in _NOT_CALLS and not method.startswith("_"):
                setattr(store, method, self._traced(getattr(store, method), f"{name} {method}"))

    async def close(self) -> None:
        """Send what is left; wait some seconds at most."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def shut_down() -> None:
            self._provider.shutdown()
            with suppress(RuntimeError):  # nobody waits any more
                loop.call_soon_threadsafe(done.set)

        # Python waits for other threads when it exits, but not for daemons.
        threading.Thread(target=shut_down, name="last traces", daemon=True).start()
        try:
            await asyncio.wait_for(done.wait(), self._last_seconds)
        except TimeoutError:
            log.warning("the last traces are lost: the collector has not taken them in %d seconds", self._last_seconds)

    def _traced(self, call: Callable[..., Awaitable[Any]], name: str) -> Callable[..., Awaitable[Any]]:
        @wraps(call)
        async def traced(*arguments: Any, **named: Any) -> Any:
            if not self._trace.get_current_span().is_recording():
                return await call(*arguments, **named)
            with self._tracer.start_as_current_span(name, record_exception=False, set_status_on_exception=False):
                return await call(*arguments, **named)

        return traced

    def _answered(self, span: Span, status: int) -> None:
        span.set_attribute("http.response.status_code", status)
        if status >= 500:
            span.set_status(self._trace.StatusCode.ERROR)


def _named_trace(scope: Scope) -> dict[str, str]:
    """The header `traceparent` of a request, if it has one that may be valid."""
    given = {name: value for name, value in scope["headers"] if name == _PARENT and len(value) == _PARENT_LENGTH}
    return {name.decode(): value.decode("latin-1") for name, value in given.items()}


def _exporter(address: str, seconds: float) -> SpanExporter:
    """Sends spans to a collector. The log says once that it takes none, and once that it takes them again."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import SpanExportResult

    class Telling(OTLPSpanExporter):
        def __init__(self) -> None:
            super().__init__(address, timeout=seconds)
            self._fails, self._reason = False, ""
            for name in (_EXPORTER, _QUEUE):
                logging.getLogger(name).addFilter(self._note)

        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            result = super().export(spans)
            fails = result is not SpanExportResult.SUCCESS
            if fails and not self._fails:
                log.warning("traces_to: no collector takes spans at %s: they are dropped (%s)", address, self._reason)
            elif self._fails and not fails:
                log.warning("traces_to: the collector at %s takes spans again", address)
            self._fails = fails
            return result

        def shutdown(self) -> None:
            super().shutdown()  # type: ignore[no-untyped-call]
            for name in (_EXPORTER, _QUEUE):
                logging.getLogger(name).removeFilter(self._note)

        def _note(self, record: logging.LogRecord) -> bool:
            """Keep what the exporter says of a batch, and let it not be logged, nor what follows from it."""
            if record.name != _EXPORTER:
                return not self._fails
            self._reason = record.getMessage()[:_REASON]
            return False

    return Telling()


def _sampler_of_our_own(configured: Sampler) -> Sampler:
    """A sampler that decides as the configured one does about a request without a client's trace.

    Calls within a request are sampled as the request is.
    """
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
    from opentelemetry.sdk.trace.sampling import ParentBased, Sampler, SamplingResult

    new_trace_id = RandomIdGenerator().generate_trace_id

    class OfNewTraces(Sampler):
        def should_sample(self, parent_context: object, trace_id: int, *about: Any, **named: Any) -> SamplingResult:
            # A share of traces is chosen by their ids, and a client chooses the id of its trace.
            return configured.should_sample(Context(), new_trace_id(), *about, **named)

        def get_description(self) -> str:
            return configured.get_description()

    own = OfNewTraces()
    return ParentBased(own, remote_parent_sampled=own, remote_parent_not_sampled=own)

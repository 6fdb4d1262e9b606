"""Exports the spans of the Python programs that are recorded.

The recorder puts this folder on ``PYTHONPATH``, so that each Python of the agent imports this
module when it starts. It uses what is installed in the environment of the agent, and must never
change what the agent does: only the standard library, Python 3.8, and no uncaught error.

It imports nothing before the agent does. Each OpenTelemetry provider that the agent makes gets one
more processor. Spans that are started without a provider go to one of this module, which is never
the global one, so that an agent can still set its own later. One instrumentor is used per framework
or SDK, and none for the SDK below a framework.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys
import threading
import warnings
from contextlib import suppress

TYPE_CHECKING = False  # `typing` is not imported at each start of Python
if TYPE_CHECKING:
    from typing import Any

URL_VARIABLE = "AGENTCI_RECORD_URL"
CASES_URL_VARIABLE = "AGENTCI_CASES_URL"
# Set by the recorder if it, and not the user, set the variable below.
CONTENT_CHOICE_VARIABLE = "AGENTCI_CONTENT_CHOICE"
CONTENT_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
TIMEOUT_SECONDS = 5
# A recorder that has ended must not slow down processes that outlive it.
MAX_FAILURES = 3
MAX_ERROR_CHARACTERS = 300
JSON_TYPE = "application/json"
BAGGAGE_CASE = "agentci.case"

OPENINFERENCE = "openinference.instrumentation."
OPENTELEMETRY = "opentelemetry.instrumentation."
# Instrumentors by the module that they instrument, the preferred one first.
FRAMEWORKS = {
    "agents": (
        (OPENINFERENCE + "openai_agents", "OpenAIAgentsInstrumentor"),
        (OPENTELEMETRY + "openai_agents", "OpenAIAgentsInstrumentor"),
    ),
    "autogen_agentchat": ((OPENINFERENCE + "autogen_agentchat", "AutogenAgentChatInstrumentor"),),
    "langchain_core": (
        (OPENINFERENCE + "langchain", "LangChainInstrumentor"),
        (OPENTELEMETRY + "langchain", "LangchainInstrumentor"),
    ),
    "llama_index.core": (
        (OPENINFERENCE + "llama_index", "LlamaIndexInstrumentor"),
        (OPENTELEMETRY + "llamaindex", "LlamaIndexInstrumentor"),
    ),
    "smolagents": ((OPENINFERENCE + "smolagents", "SmolagentsInstrumentor"),),
}
# These have no spans of model calls, so the SDK below them is instrumented, too.
OUTER_FRAMEWORKS = {
    "crewai": (
        (OPENINFERENCE + "crewai", "CrewAIInstrumentor"),
        (OPENTELEMETRY + "crewai", "CrewAIInstrumentor"),
    ),
}
# These have spans of their own.
NATIVE_FRAMEWORKS = ("agent_framework", "google.adk", "pydantic_ai", "semantic_kernel", "strands")
SDKS = {
    "anthropic": (
        (OPENINFERENCE + "anthropic", "AnthropicInstrumentor"),
        (OPENTELEMETRY + "anthropic", "AnthropicInstrumentor"),
    ),
    "google.genai": (
        (OPENINFERENCE + "google_genai", "GoogleGenAIInstrumentor"),
        (OPENTELEMETRY + "google_genai", "GoogleGenAiSdkInstrumentor"),
    ),
    "openai": (
        (OPENINFERENCE + "openai", "OpenAIInstrumentor"),
        (OPENTELEMETRY + "openai", "OpenAIInstrumentor"),
        (OPENTELEMETRY + "openai_v2", "OpenAIInstrumentor"),
    ),
}
INSTRUMENTORS = {**FRAMEWORKS, **OUTER_FRAMEWORKS, **SDKS}
INSTRUMENTOR_MODULES = frozenset(name for rows in INSTRUMENTORS.values() for name, _ in rows)
# Clients of services that the proxy does not record, as in `apis/registry.py`.
UNRECORDED_CLIENTS = ("botocore", "vertexai")
KERNEL_LOGGER = "semantic_kernel"
KERNEL_TELEMETRY_LOGGER = "semantic_kernel.utils.telemetry"


class Exporter:
    """Sends each span and log record when it ends, so that a killed process loses none."""

    def __init__(self) -> None:
        self._local = threading.local()
        self._failures = 0
        self._named: set[str] = set()

    def send(self, path: Any, content: Any, case: Any = "") -> None:
        """Post a JSON value to the recorder.

        Args:
            case: its id, if it is known.
        """
        import json  # noqa: PLC0415 (not at each start of Python)

        self._post(path, json.dumps(content).encode("utf-8", "replace"), JSON_TYPE, case)

    def report_error(self, what: Any, error: Any) -> None:
        """Report an error to the recorder, each once."""
        text = f"{what}: {type(error).__name__}: {error}"[:MAX_ERROR_CHARACTERS]
        if text not in self._named:
            self._named.add(text)
            with suppress(Exception):  # the recorder has ended
                self._post("/errors", text.encode("utf-8", "replace"), "text/plain")

    def _post(self, path: Any, body: Any, kind: Any, case: Any = "") -> None:
        if self._failures >= MAX_FAILURES:
            return
        host, prefix = _find_address(case)
        for is_last in (False, True):
            try:
                self._post_once(host, prefix + path, body, kind)
            except Exception:
                self._local.connection = None  # the other end may have closed it
                if is_last:
                    self._failures += 1
                    raise
            else:
                self._failures = 0
                return

    def _post_once(self, host: Any, path: Any, body: Any, kind: Any) -> None:
        import http.client  # noqa: PLC0415 (not at each start of Python)

        connection = getattr(self._local, "connection", None)
        if connection is None or self._local.pid != os.getpid():  # also after a fork
            connection = http.client.HTTPConnection(host, timeout=TIMEOUT_SECONDS)
            self._local.connection, self._local.pid = connection, os.getpid()
        connection.request("POST", path, body, {"Content-Type": kind})
        connection.getresponse().read()


def _find_address(case: Any) -> Any:
    """Return host and path to send to: those of the case, or of the test that pytest runs."""
    url = os.environ[URL_VARIABLE]
    test = case or os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
    base = os.environ.get(CASES_URL_VARIABLE)
    if test and base:
        from urllib.parse import quote  # noqa: PLC0415 (not at each start of Python)

        url = f"{base}/c/{quote(test, safe='')}/{url.rpartition('/')[2]}"
    host, _, path = url.partition("://")[2].partition("/")
    return host, "/" + path


EXPORTER = Exporter()


def attempt(what: Any, function: Any, *args: Any) -> Any:
    """Call a function; an error is reported to the recorder, and does not reach the agent."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args)
    except Exception as error:  # noqa: BLE001 (the agent goes on)
        EXPORTER.report_error(what, error)
        return None


# Values


def make_attributes(attributes: Any) -> Any:
    """Return attributes as OTLP JSON."""
    return [{"key": str(k), "value": make_value(v)} for k, v in (attributes or {}).items()]


def make_value(value: Any) -> Any:
    """Return a value of an attribute or of a log record as OTLP JSON."""
    made: dict[str, Any] = {} if value is None else {"stringValue": str(value)}
    if isinstance(value, bool):
        made = {"boolValue": value}
    elif isinstance(value, int):
        made = {"intValue": str(value)}
    elif isinstance(value, float) and abs(value) < float("inf"):
        made = {"doubleValue": value}
    elif isinstance(value, (list, tuple)):
        made = {"arrayValue": {"values": [make_value(each) for each in value]}}
    elif hasattr(value, "items"):
        made = {"kvlistValue": {"values": make_attributes(value)}}
    return made


def make_scope(scope: Any) -> Any:
    """Return an instrumentation scope as OTLP JSON."""
    return {
        "name": getattr(scope, "name", "") or "",
        "version": getattr(scope, "version", "") or "",
    }


def make_span(span: Any) -> Any:
    """Return a finished span as OTLP JSON."""
    content = {
        "traceId": format(span.context.trace_id, "032x"),
        "spanId": format(span.context.span_id, "016x"),
        "name": span.name,
        "kind": span.kind.value + 1,
        "startTimeUnixNano": str(span.start_time),
        "endTimeUnixNano": str(span.end_time),
        "attributes": make_attributes(span.attributes),
        "events": [
            {
                "name": event.name,
                "timeUnixNano": str(event.timestamp),
                "attributes": make_attributes(event.attributes),
            }
            for event in span.events
        ],
        "status": {"code": span.status.status_code.value},
    }
    if span.parent is not None:
        content["parentSpanId"] = format(span.parent.span_id, "016x")
    return content


def send_span(span: Any) -> None:
    """Export a finished span."""
    group = {"scope": make_scope(span.instrumentation_scope), "spans": [make_span(span)]}
    resource = {"attributes": make_attributes(span.resource.attributes)}
    batch = {"resource": resource, "scopeSpans": [group]}
    EXPORTER.send("/v1/traces", {"resourceSpans": [batch]}, CASES.pop(span.context.span_id, ""))


def note_case(span: Any, context: Any) -> None:
    """Note the case that the baggage of a span names, such as that of a request to a server."""
    case = importlib.import_module("opentelemetry.baggage").get_baggage(BAGGAGE_CASE, context)
    if case:
        CASES[span.context.span_id] = str(case)


def send_record(emitted: Any) -> None:
    """Export a log record, of any version of the SDK, if it belongs to a span."""
    record = getattr(emitted, "log_record", emitted)
    if not record.trace_id:
        return
    resource = getattr(emitted, "resource", None) or getattr(record, "resource", None)
    content = {
        "timeUnixNano": str(record.timestamp or record.observed_timestamp or 0),
        "traceId": format(record.trace_id, "032x"),
        "spanId": format(record.span_id or 0, "016x"),
        "eventName": getattr(record, "event_name", None) or "",
        "body": make_value(record.body),
        "attributes": make_attributes(record.attributes),
    }
    scope = make_scope(getattr(emitted, "instrumentation_scope", None))
    batch = {
        "resource": {"attributes": make_attributes(getattr(resource, "attributes", None))},
        "scopeLogs": [{"scope": scope, "logRecords": [content]}],
    }
    EXPORTER.send("/v1/logs", {"resourceLogs": [batch]})


CASES: dict[int, str] = {}


class Processor:
    """A processor of spans and of log records."""

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """Note the case of a span."""
        attempt("baggage", note_case, span, parent_context)

    def _on_ending(self, span: Any) -> None:
        """Do nothing."""

    def on_end(self, span: Any) -> None:
        """Export a span."""
        attempt("export of a span", send_span, span)

    def on_emit(self, log_record: Any) -> None:
        """Export a log record."""
        attempt("export of a log record", send_record, log_record)

    emit = on_emit

    def shutdown(self) -> None:
        """Do nothing: nothing is buffered."""

    def force_flush(self, *_: Any) -> bool:
        """Return True: nothing is buffered."""
        return True


PROCESSOR = Processor()


# Providers


class Providers:
    """Providers of this module, each made for the first span or log record."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._made: dict[str, Any] = {}

    def get(self, module: Any, name: Any, **options: Any) -> Any:
        """Return the provider of a module of the SDK; None if it is not installed."""
        with self._lock:
            if module not in self._made:
                self._made[module] = attempt(module, self._make, module, name, options)
            return self._made[module]

    @staticmethod
    def _make(module: Any, name: Any, options: Any) -> Any:
        if importlib.util.find_spec("opentelemetry.sdk") is None:
            return None
        return getattr(importlib.import_module(module), name)(shutdown_on_exit=False, **options)

    def get_tracers(self) -> Any:
        """Return the provider of tracers."""
        if importlib.util.find_spec("opentelemetry") is None:
            return None
        sampling = attempt("sampling", _import_found, "opentelemetry.sdk.trace.sampling")
        options = {} if sampling is None else {"sampler": sampling.ALWAYS_ON}
        return self.get("opentelemetry.sdk.trace", "TracerProvider", **options)

    def get_loggers(self) -> Any:
        """Return the provider of loggers."""
        if importlib.util.find_spec("opentelemetry") is None:
            return None
        return self.get("opentelemetry.sdk._logs", "LoggerProvider")


def _import_found(name: Any) -> Any:
    return importlib.import_module(name) if importlib.util.find_spec("opentelemetry.sdk") else None


PROVIDERS = Providers()


def use_own_tracers(module: Any) -> None:
    """Let tracers use a provider of this module as long as there is no global one."""
    replace_default(module.ProxyTracer, "_tracer", module, "_TRACER_PROVIDER", "get_tracers")


def use_own_loggers(module: Any) -> None:
    """Let loggers use a provider of this module as long as there is no global one."""
    replace_default(module.ProxyLogger, "_logger", module, "_LOGGER_PROVIDER", "get_loggers")


def replace_default(proxy: Any, name: Any, module: Any, global_name: Any, getter: Any) -> None:
    """Replace what a proxy uses as long as there is no global provider."""
    original = getattr(proxy, name)
    is_tracer = getter == "get_tracers"

    def make(owner: Any) -> Any:
        provider = getattr(PROVIDERS, getter)()
        if provider is None:
            return None
        if is_tracer:
            scope = owner._instrumenting_module_name, owner._instrumenting_library_version  # noqa: SLF001
            return provider.get_tracer(*scope)
        return provider.get_logger(owner._name, owner._version)  # noqa: SLF001

    def find(self: Any) -> Any:
        found = original.fget(self)
        if getattr(module, global_name) is not None:
            return found
        if "_agentci_own" not in self.__dict__:
            self.__dict__["_agentci_own"] = attempt("provider", make, self)
        return self.__dict__["_agentci_own"] or found

    setattr(proxy, name, property(find))


def watch_tracer_providers(module: Any) -> None:
    """Add the processor to each provider of tracers."""
    add_processor(module.TracerProvider, "add_span_processor")


def watch_logger_providers(module: Any) -> None:
    """Add the processor to each provider of loggers."""
    add_processor(module.LoggerProvider, "add_log_record_processor")


def add_processor(provider: Any, method: Any) -> None:
    """Add the processor to each provider when it is made."""
    original = provider.__init__

    def init(self: Any, *args: Any, **options: Any) -> None:
        original(self, *args, **options)
        attempt(method, getattr(self, method), PROCESSOR)

    provider.__init__ = init


# Instrumentors


class InstrumentorChoice:
    """Chooses one instrumentor per stack; none if the agent instruments itself."""

    def __init__(self) -> None:
        self._used: dict[str, Any] = {}
        self._is_own = threading.local()
        self._has_framework = False
        self._is_by_agent = False

    def begin(self, name: Any) -> None:
        """Instrument a module that was imported."""
        if self._is_by_agent or (name in SDKS and self._has_framework):
            return
        for module, instrumentor in INSTRUMENTORS[name]:
            if attempt(module, self._use, name, module, instrumentor):
                if name in FRAMEWORKS:
                    self.cover()
                return

    def cover(self) -> None:
        """Note that a framework has spans of its model calls, and stop those of SDKs."""
        self._has_framework = True
        self._stop([name for name in self._used if name in SDKS])

    def give_way(self) -> None:
        """Stop all instrumentors if the agent calls one; calls of this module do not count."""
        if not getattr(self._is_own, "value", False):
            self._is_by_agent = True
            self._stop(list(self._used))

    def _use(self, name: Any, module: Any, instrumentor: Any) -> bool:
        if name == "anthropic" and _find("anthropic._tracing"):
            return False  # it has spans of its own
        provider = PROVIDERS.get_tracers() if _find(module) else None
        if provider is None:
            return False
        options = {"tracer_provider": provider, "logger_provider": PROVIDERS.get_loggers()}
        made = getattr(importlib.import_module(module), instrumentor)()
        self._is_own.value = True
        try:
            made.instrument(skip_dep_check=True, exclusive_processor=False, **options)
        finally:
            self._is_own.value = False
        self._used[name] = made
        return True

    def _stop(self, names: Any) -> None:
        for name in names:
            attempt("end of the instrumentation of " + name, self._used.pop(name).uninstrument)


def _find(module: Any) -> Any:
    """Whether a module is installed."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


INSTRUMENTATION = InstrumentorChoice()


def watch_instrumentors(module: Any) -> None:
    """Stop instrumenting if the agent uses instrumentors itself."""
    base = module.BaseInstrumentor
    original = base.instrument

    def instrument(self: Any, **options: Any) -> Any:
        if type(self).__module__ in INSTRUMENTOR_MODULES:
            attempt("instrumentation", INSTRUMENTATION.give_way)
        return original(self, **options)

    base.instrument = instrument


def begin_native(module: Any) -> None:
    """Switch on the spans that a framework has itself."""
    if not _find("opentelemetry.sdk"):
        return
    name = module.__name__
    INSTRUMENTATION.cover()
    if name == "pydantic_ai":
        settings = module.InstrumentationSettings(tracer_provider=PROVIDERS.get_tracers())
        module.Agent.instrument_all(settings)
    if name == KERNEL_LOGGER:
        record_kernel()


def record_kernel() -> None:
    """Export the log records of Semantic Kernel, as only these have the question.

    Their level is usually not logged, and other handlers must not log more than before.
    """
    import logging  # noqa: PLC0415 (not at each start of Python)

    above, logger = logging.getLogger(KERNEL_LOGGER), logging.getLogger(KERNEL_TELEMETRY_LOGGER)

    class PassOn(logging.Handler):
        def emit(self, record: Any) -> None:
            if record.levelno >= above.getEffectiveLevel():
                above.handle(record)

    handler = importlib.import_module("opentelemetry.sdk._logs").LoggingHandler
    logger.addHandler(handler(level=logging.INFO, logger_provider=PROVIDERS.get_loggers()))
    logger.addHandler(PassOn())
    logger.propagate = False
    logger.setLevel(logging.INFO)


# Imports


def begin_instrumentation(module: Any) -> None:
    """Instrument a module that was imported."""
    INSTRUMENTATION.begin(module.__name__)


def report_module(module: Any) -> None:
    """Report the import of a module to the recorder."""
    EXPORTER.send("/modules", {"name": module.__name__})


HOOKS = {
    "opentelemetry.trace": use_own_tracers,
    "opentelemetry._logs._internal": use_own_loggers,
    "opentelemetry.sdk.trace": watch_tracer_providers,
    "opentelemetry.sdk._logs._internal": watch_logger_providers,
    "opentelemetry.instrumentation.instrumentor": watch_instrumentors,
    **dict.fromkeys(NATIVE_FRAMEWORKS, begin_native),
    **dict.fromkeys(INSTRUMENTORS, begin_instrumentation),
    **dict.fromkeys(UNRECORDED_CLIENTS, report_module),
}


class Finder:
    """Finds modules as usual, and calls a hook after the import of those that have one."""

    @staticmethod
    def find_spec(name: Any, path: Any = None, target: Any = None) -> Any:
        """Return the spec of a module with a hook; None for others."""
        if name not in HOOKS:
            return None
        others = (each for each in sys.meta_path if each is not Finder)
        found = (each.find_spec(name, path, target) for each in others)
        spec = next((each for each in found if each is not None), None)
        if spec is not None and spec.loader is not None:
            attempt("import of " + name, _add_hook, name, spec.loader)
        return spec


def _add_hook(name: Any, loader: Any) -> None:
    original = loader.exec_module

    def exec_module(module: Any) -> None:
        original(module)
        if module.__name__ == name:
            attempt(name, HOOKS[name], module)

    loader.exec_module = exec_module


def choose_content() -> None:
    """Choose the value that switches content on in the packages of this environment."""
    if os.environ.get(CONTENT_CHOICE_VARIABLE):
        is_new = _find("opentelemetry.util") and _find("opentelemetry.util.genai")
        os.environ[CONTENT_VARIABLE] = "SPAN_ONLY" if is_new else "true"


def run_next() -> None:
    """Run the ``sitecustomize`` that Python would have run without this one."""
    own = os.path.dirname(os.path.abspath(__file__))
    folders = [each for each in sys.path if os.path.abspath(each or ".") != own]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", folders)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if os.environ.get(URL_VARIABLE) and __name__ == "sitecustomize":
    attempt("content", choose_content)
    sys.meta_path.insert(0, Finder)
if __name__ == "sitecustomize":
    run_next()  # its errors belong to the environment

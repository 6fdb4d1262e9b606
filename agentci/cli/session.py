"""Everything outside of the program that a command uses."""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Final, TextIO

from msgspec import Struct

from agentci._util.http_client import HttpClient
from agentci.github.events import find_agent_refusal
from agentci.github.workflow import Workflow
from agentci.model.values import replace
from agentci.runner.services import Services

OTLP_HEADERS_VARIABLE: Final = "OTEL_EXPORTER_OTLP_HEADERS"


class Session(Struct, frozen=True, kw_only=True):
    """The outside of one command; commands pass on only the parts that a function uses.

    Attributes:
        services: executors, judges, caches and clock, for running checks.
        workflow: the workflow run that this process is a step of.
        http: the HTTP client of the run.
        out: the stream that results are written to.
        colour: whether it is a terminal that shows colours.
        otlp_headers: headers for the OTLP endpoint, as ``OTLP_HEADERS_VARIABLE`` has them.
    """

    services: Services
    workflow: Workflow
    http: HttpClient
    out: TextIO
    colour: bool = False
    otlp_headers: str = ""


def allow_variables(session: Session, names: Sequence[str]) -> Session:
    """The session, in which configs may name only these variables; without names, the default."""
    if not names:
        return session
    services = session.services
    return replace(session, services=replace(services, variables=services.variables.allow(names)))


def restrict_agents(session: Session, *, allowed: bool) -> Session:
    """The session, in which agents run only in the sandbox unless the workflow ``allowed`` more.

    The event of the workflow is read before the first agent that has no sandbox.
    """
    find = cache(partial(find_agent_refusal, session.workflow.context, allowed=allowed))
    return replace(session, services=replace(session.services, find_agent_refusal=find))


def allow_caches(session: Session, folders: Mapping[str, str]) -> Session:
    """The session, in which configs may open these folders to evaluators, by their variables.

    Raises:
        InputError: a folder cannot be opened.
    """
    if not folders:
        return session
    from agentci.runner.evaluator_caches import open_evaluator_caches  # noqa: PLC0415 (seldom used)

    services = session.services
    caches = open_evaluator_caches(folders, services)
    return replace(session, services=replace(services, evaluator_caches=caches))

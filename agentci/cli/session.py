"""What a command works with."""

from dataclasses import dataclass
from typing import TextIO

from agentci.github.workflow import Workflow
from agentci.runner.services import Services


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What one run of a command has of the outside; commands pass on only what is used.

    Attributes:
        services: what running checks needs.
        workflow: the workflow run that this process is a step of.
        out: the stream that results are written to.
    """

    services: Services
    workflow: Workflow
    out: TextIO

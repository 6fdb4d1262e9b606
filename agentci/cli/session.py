"""What a command works with."""

from typing import TextIO

from msgspec import Struct

from agentci.github.workflow import Workflow
from agentci.runner.services import Services


class Session(Struct, frozen=True, kw_only=True):
    """What one run of a command has of the outside; commands pass on only what is used.

    Attributes:
        services: what running checks needs.
        workflow: the workflow run that this process is a step of.
        out: the stream that results are written to.
    """

    services: Services
    workflow: Workflow
    out: TextIO

"""Entries of ``evaluators:`` for the graders of pytest-agent-evals."""

from typing import Final, Literal

from pydantic import Field

from agentci.dialects.agentevals.entries import ProcessEntry
from agentci.dialects.fields import Grader, Seconds

# As OpenAI's graders and Foundry's evaluators are called.
DEFAULT_FUNCTION: Final = "grade"
# That of OpenAI's graders.
GRADER_SECONDS: Final = 120


class GraderEntry(ProcessEntry):
    """A Python function of your own, `grade(sample, item)`, that returns a score."""

    type: Literal["grader"] = Field(description="A Python function that returns a score.")
    grader: Grader = Field(
        description="File and function, `FILE.py:FUNCTION`; relative to this config. Without a "
        "function it is `grade`.",
        examples=["graders.py:is_short"],
    )
    timeout: Seconds = Field(
        default=GRADER_SECONDS, description="Seconds after which a call is stopped."
    )
    network: bool = Field(default=True, description="Whether it may use the network.")

    @property
    def file(self) -> str:
        """The part before the colon."""
        return self.grader.partition(":")[0]

    @property
    def function(self) -> str:
        """The part behind it."""
        return self.grader.partition(":")[2] or DEFAULT_FUNCTION

"""Judgements that were made without an engine, or out of several replies."""

from agentci.model.judgement import Judgement
from agentci.model.requests import Reply, Settled


def settled(reply: Reply) -> Judgement:
    """The judgement that was made."""
    if not isinstance(reply, Settled):
        raise TypeError(f"nothing was asked for, and {type(reply).__name__} came")
    return reply.judgement

"""Judgements that were made without an engine, or out of several replies."""

from agentci.model.exchange import Reply, Settled
from agentci.model.judgement import Judgement


def settled(reply: Reply) -> Judgement:
    """The judgement that was made."""
    if not isinstance(reply, Settled):
        raise TypeError(f"nothing was asked for, and {type(reply).__name__} came")
    return reply.judgement

"""Replies of models as they are kept, and by what they are found again."""

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

import msgspec

from agentci.model.embedding import CompareEmbeddings
from agentci.model.json import Json, JsonObject
from agentci.model.judging import AskModel, ModelReply
from agentci.model.requests import ProgramReply
from agentci.version import __version__

# Of what a key is made from; a higher one makes all keys anew.
FORMAT: Final = 1


def question_digest(request: AskModel | CompareEmbeddings, files: Sequence[Json]) -> bytes:
    """Of all that a reply hangs on; not of the key, nor of what becomes of several replies.

    Args:
        files: what is known of the files that a judge's command names.
    """
    settings = request.panel.settings
    facts: Json = {
        "format": FORMAT,
        "agentci": __version__,
        "provider": settings.provider,
        "address": settings.base_url,
        "api_version": settings.api_version,
        "model": settings.model,
        "temperature": settings.temperature,
        "effort": settings.effort,
        "output_tokens": settings.output_tokens,
        "command": settings.command,
        "files": files,
        **_asked(request),
    }
    return sha256(json.dumps(facts, sort_keys=True).encode()).digest()


def _asked(request: AskModel | CompareEmbeddings) -> JsonObject:
    if isinstance(request, CompareEmbeddings):
        return {"embedded": request.texts}
    question, form = request.question, request.question.form
    return {
        "system": question.system,
        "user": question.user,
        "form": None if form is None else [type(form).__name__, msgspec.to_builtins(form)],
    }


def sample_key(digest: bytes, number: int) -> bytes:
    """What the reply that gave the verdict ``number`` to a question is kept under."""
    return sha256(b"model %d " % number + digest).digest()


def as_printed(reply: ModelReply) -> ProgramReply:
    """A reply as if a program had printed it, which is how all are kept."""
    return ProgramReply(stdout=msgspec.json.encode(reply), stderr="", exit_code=0)


def as_said(printed: ProgramReply) -> ModelReply | None:
    """The other way round; None where no model's reply was kept so."""
    try:
        return msgspec.json.decode(printed.stdout, type=ModelReply)
    except msgspec.MsgspecError:
        return None

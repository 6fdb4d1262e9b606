"""Tools that the model asked for in its messages, joined with the answers that it was shown."""

import json
from collections.abc import Sequence

from msgspec import Struct

from agentci.model.json import Json
from agentci.model.values import replace
from agentci.recordings.telemetry import message
from agentci.recordings.telemetry.message import CallPart, ResponsePart
from agentci.recordings.telemetry.model_calls import Call


class Asked(Struct, frozen=True, kw_only=True):
    """A tool that was asked for.

    Attributes:
        round: index of the model call that asked.
        result: None where no answer was found.
    """

    part: CallPart
    round: int
    result: Json = None


class _Answer(Struct, frozen=True, kw_only=True):
    """An answer, and the index of the model call that is first shown it."""

    part: ResponsePart
    round: int

    def fits(self, asked: Asked) -> bool:
        """Whether it may answer a request although it does not name its id."""
        return self.round > asked.round and self.part.name in (None, asked.part.name)


def requests_of(calls: Sequence[Call]) -> tuple[tuple[Asked, ...], tuple[str, ...]]:
    """What the outputs of model calls ask for, in order, and what had to be guessed.

    An answer belongs to a request of an earlier model call than the one that is first shown it:
    by id, else to the first request that it fits.
    """
    asked = _asked(calls)
    answers = _answers(calls)
    by_id = {answer.part.id: answer for answer in answers}
    ids = {one.part.id for one in asked} - {None}
    strays = [answer for answer in answers if answer.part.id not in ids]
    warnings: list[str] = []
    joined: list[Asked] = []
    for one in asked:
        answer = by_id.get(one.part.id) if one.part.id is not None else None
        if answer is not None and answer.round > one.round:
            del by_id[one.part.id]
        else:
            answer = _by_order(one, strays, warnings)
        joined.append(one if answer is None else replace(one, result=answer.part.value))
    return tuple(joined), tuple(warnings)


def _asked(calls: Sequence[Call]) -> list[Asked]:
    """All requests; those that agentevals 0.11.0 overlooks only where it sees none."""
    asked = [
        Asked(part=part, round=index)
        for index, call in enumerate(calls)
        for part in message.calls(call.output)
    ]
    return [one for one in asked if not one.part.overlooked] or asked


def _answers(calls: Sequence[Call]) -> list[_Answer]:
    found: dict[tuple[str | None, str], _Answer] = {}
    for index, call in enumerate(calls):
        for part in message.responses(call.input):
            key = (
                (None, part.id) if part.id else (part.name, json.dumps(part.value, sort_keys=True))
            )
            found.setdefault(key, _Answer(part=part, round=index))
    return list(found.values())


def _by_order(asked: Asked, strays: list[_Answer], warnings: list[str]) -> _Answer | None:
    """The first stray answer that fits, which is then taken."""
    answer = next((stray for stray in strays if stray.fits(asked)), None)
    if answer is None:
        return None
    strays.remove(answer)
    if answer.part.id is not None:
        warnings.append(
            f"tool {asked.part.name} result joined by order "
            f"(response id '{answer.part.id}' matches no call)",
        )
    return answer

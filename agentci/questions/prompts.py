"""Questions to judges: our words in the system message, those of strangers between markers."""

from typing import Final

from agentci.errors import EvaluatorError
from agentci.model.json import JsonObject
from agentci.model.judging import AnyForm, Question
from agentci.questions.forms import contract_of
from agentci.text import untrusted
from agentci.text.templates import MissingError, fill

_REPAIR: Final = (
    "You are given a reply that should have been one JSON object, and is not. Write down the"
    " verdict that it states, in the form below. Do not judge anew; where it states no verdict, or"
    " more than one, reply with {}."
)
_REPLY: Final = "reply"


def pose(rubric: str, template: str, values: JsonObject, form: AnyForm) -> Question:
    """Ask for a verdict.

    Args:
        rubric: how to judge; in the words of whoever wrote the config.
        template: of the data, with ``{{ name }}`` where a value goes.

    Raises:
        EvaluatorError: the template names what is not there.
    """
    texts: list[str] = []

    def note(_: str, text: str) -> str:
        texts.append(text)
        return ""

    try:
        fill(template, values, show=note)
        fence = untrusted.Fence((rubric, template, *texts))
        data = fill(template, values, show=fence.around)
    except MissingError as error:
        raise EvaluatorError(str(error)) from None
    return _question(rubric, data, form)


def repair(form: AnyForm, reply: str) -> Question:
    """Ask to write down once more what a reply says, without what it was a reply to."""
    fence = untrusted.Fence((_REPAIR, reply))
    return _question(_REPAIR, fence.around(_REPLY, reply), form)


def _question(instructions: str, data: str, form: AnyForm) -> Question:
    contract = contract_of(form)
    return Question(
        system=f"{instructions}\n\n{untrusted.NOTICE}\n\n{contract}",
        user=f"{untrusted.NOTICE}\n\n{data}\n\n{untrusted.REMINDER} {contract}",
        form=form,
    )

"""Reads checklists: a mark for each criterion, as far as a model gave them."""

from collections.abc import Mapping

from agentci._util.text.suggest import quoted
from agentci.evaluators.prompts.answer_schema import CHECKS, ID, OVERALL, REASONING, mark_name
from agentci.judges.provider import NoVerdictError, UnreadableError
from agentci.model.json import Json, JsonObject
from agentci.model.judging import Checklist
from agentci.model.ruling import Mark, Verdict


def verdict_in_checklist(document: JsonObject, form: Checklist) -> Verdict | None:
    """What an object says; None where it is no checklist, or has none of the criteria.

    Raises:
        UnreadableError: a mark is none that was asked for.
        NoVerdictError: a criterion has two marks that differ.
    """
    checks = document.get(CHECKS)
    marks: dict[str, Mark] = {}
    for check in checks if isinstance(checks, list) else ():
        name = check.get(ID) if isinstance(check, Mapping) else None
        if not isinstance(check, Mapping) or name not in form.names:
            continue
        mark = _mark(check, str(name), form)
        if marks.setdefault(str(name), mark).value != mark.value:
            said = f"the judge's reply contradicts itself about {quoted(str(name))}"
            raise NoVerdictError(said)
    if not marks:
        return None
    # In the order of the form, whatever that of the reply.
    return Verdict(
        marks={name: marks[name] for name in form.names if name in marks},
        reason=_text(document.get(OVERALL)),
    )


def _mark(check: JsonObject, name: str, form: Checklist) -> Mark:
    value, reason = check.get(mark_name(form)), _text(check.get(REASONING))
    match form.kind:
        case "boolean" if isinstance(value, bool):
            return Mark(value=value, reason=reason)
        case "label" if isinstance(value, str) and value in form.labels:
            return Mark(value=value, reason=reason)
        case "number" if isinstance(value, float) and value.is_integer():
            if form.low <= value <= form.high:
                return Mark(value=value, reason=reason)
        case _:
            pass
    wanted = {
        "boolean": "neither true nor false",
        "label": f"none of {', '.join(form.labels)}",
        "number": f"no whole number from {form.low} to {form.high}",
    }
    raise UnreadableError(f"the judge's mark for {quoted(name)} is {wanted[form.kind]}")


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""

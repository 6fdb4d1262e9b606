"""Types that the fields of graders share."""

import re
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator, Field

from agentci.dialects.openai_eval.formula import parse_formula
from agentci.dialects.openai_eval.rows import NAMES
from agentci.text.names import did_you_mean, one_of, quoted
from agentci.text.templates import named

# What begins like a place in a template.
_BEGUN: Final = re.compile(r"\{\{\s*(?:item|sample)\b")


def _known(template: str) -> str:
    """Refuse a template with places that would never be filled.

    Raises:
        ValueError: says which one, and what there is instead.
    """
    places = named(template)
    for namespace, steps in places:
        if namespace not in NAMES:
            meant = f"`item.{namespace}`" if namespace in NAMES["item"] else "`item` or `sample`"
            raise ValueError(f"the template names {quoted(namespace)}: write {meant}")
        known = NAMES[namespace]
        if steps and steps[0] not in known:
            hint = did_you_mean(f"{steps[0]}", known) or f"there is {one_of(known)}"
            raise ValueError(f"the template names {quoted(f'{steps[0]}')} of {namespace}; {hint}")
    if len(_BEGUN.findall(template)) > len(places):
        raise ValueError("a place of a template is written `{{ item.name }}`, and no more")
    return template


def _understood(formula: str) -> str:
    parse_formula(formula)
    return formula


Template: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_known)]
FormulaText: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_understood)]

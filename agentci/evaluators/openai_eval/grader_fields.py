"""Types that the fields of graders share."""

import ast
import re
import warnings
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator, Field

from agentci._util.text.suggest import did_you_mean, one_of, quoted
from agentci._util.text.templates import named
from agentci.evaluators.grader_payload import SAMPLE
from agentci.evaluators.openai_eval.formula import parse_formula
from agentci.evaluators.openai_eval.template_data import ITEM, SAMPLE_NAMES

MAX_SOURCE_BYTES: Final = 256 * 1024  # as many as OpenAI takes

# What begins like a place in a template.
_BEGUN: Final = re.compile(r"\{\{\s*(?:item|sample)\b")


def _known(template: str) -> str:
    """Refuse a template with places that would never be filled.

    What is in `item` depends on the dataset.

    Raises:
        ValueError: says which one, and what there is instead.
    """
    places = named(template)
    for namespace, steps in places:
        if namespace not in (ITEM, SAMPLE):
            raise ValueError(
                f"the template names {quoted(namespace)}: write `{ITEM}.{namespace}`, or"
                f" `{SAMPLE}.` and what the agent did"
            )
        if namespace == SAMPLE and steps and steps[0] not in SAMPLE_NAMES:
            hint = did_you_mean(f"{steps[0]}", SAMPLE_NAMES) or f"there is {one_of(SAMPLE_NAMES)}"
            raise ValueError(f"the template names {quoted(f'{steps[0]}')} of {SAMPLE}; {hint}")
    if len(_BEGUN.findall(template)) > len(places):
        raise ValueError("a place of a template is written `{{ item.name }}`, and no more")
    return template


def _understood(formula: str) -> str:
    parse_formula(formula)
    return formula


def _python(source: str) -> str:
    if len(source.encode("utf-8", "surrogatepass")) > MAX_SOURCE_BYTES:
        raise ValueError(f"the source has more than {MAX_SOURCE_BYTES:,} bytes")
    try:
        with warnings.catch_warnings(action="ignore"):  # they are for its author's own tools
            ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        what = f"line {error.lineno}: {error.msg}" if isinstance(error, SyntaxError) else f"{error}"
        raise ValueError(f"the source is no Python: {what}") from None
    return source


Template: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_known)]
FormulaText: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_understood)]
Source: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_python)]
Finite: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]

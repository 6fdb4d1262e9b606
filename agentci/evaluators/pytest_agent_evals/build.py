"""Makes evaluators of entries of ``type: prompt``."""

from collections.abc import Sequence

from jinja2 import Environment, TemplateSyntaxError
from jinja2.meta import find_undeclared_variables

from agentci.errors import InputError
from agentci.evaluators.context import Surroundings
from agentci.evaluators.pytest_agent_evals.entries import PromptEntry
from agentci.evaluators.pytest_agent_evals.prompt_evaluator import (
    UNBOUNDED,
    Answer,
    Bar,
    PromptEvaluator,
)
from agentci.model.identity import Identity
from agentci.model.judging import WantedPanel
from agentci.model.place import Place
from agentci.model.values import replace


def build_prompt(entry: PromptEntry, surroundings: Surroundings) -> PromptEvaluator:
    """Make the evaluator.

    Raises:
        InputError: there is no such prompt, it is no template, or nobody said who judges.
    """
    bar = bar_of(entry.threshold, entry.scale)
    place = surroundings.place_of("prompt")
    template = entry.prompt
    if is_path(template):
        file = surroundings.read(template, "prompt")
        template, place = file.text, Place(file=file.name)
        check_template(template, place, line_counts=True)
    else:
        check_template(template, place)
    judge_place = surroundings.place_of("judge" if entry.judge is not None else "type")
    evaluator = assemble_prompt(
        template,
        bar,
        place=surroundings.place,
        wanted=WantedPanel(
            panel=surroundings.judges.panel(entry.judge, judge_place),
            name=entry.name,
            place=judge_place,
        ),
    )
    identity = replace(evaluator.identity, required=entry.required, repetition=entry.repetition)
    return replace(evaluator, identity=identity)


def assemble_prompt(
    template: str, bar: Bar, *, place: Place, wanted: WantedPanel
) -> PromptEvaluator:
    """The evaluator that judges by ``template``, and has the name of the panel that it wants."""
    return PromptEvaluator(
        identity=Identity(
            name=wanted.name,
            type="prompt",
            bar=bar.in_words,
            threshold=None if isinstance(bar.threshold, bool) else bar.score(bar.threshold),
            required=True,
            place=place,
        ),
        template=template,
        bar=bar,
        wanted=wanted,
    )


def bar_of(threshold: Answer, scale: Sequence[float] | None = None) -> Bar:
    """What has to be reached; a fraction is on a scale from 0 to 1 unless another is named."""
    if scale is not None:
        low, high = scale
        return Bar(threshold=threshold, scale=(low, high))
    is_share = isinstance(threshold, float) and 0 <= threshold <= 1
    return Bar(threshold=threshold, scale=(0.0, 1.0) if is_share else UNBOUNDED)


def is_path(prompt: str) -> bool:
    """Whether a prompt is named rather than written: one line that puts nothing in."""
    return "\n" not in prompt.strip() and "{{" not in prompt and "{%" not in prompt


def check_template(template: str, place: Place, *, line_counts: bool = False) -> None:
    """See whether a judge is shown anything by it.

    Args:
        place: where it stands.
        line_counts: whether that is all of a file.

    Raises:
        InputError: it is no template, or names no variable.
    """
    try:
        tree = Environment().parse(template)  # noqa: S701 (which escapes nothing: none is filled)
    except TemplateSyntaxError as error:
        at = Place(file=place.file, line=error.lineno) if line_counts else place
        where = "" if line_counts else f" on its line {error.lineno}"
        raise InputError.of(
            f"the prompt is no template{where}: {error.message}", place=at
        ) from None
    except RecursionError:
        raise InputError.of("the prompt is nested too deeply", place=place) from None
    if not find_undeclared_variables(tree):
        raise InputError.of(
            "the prompt names no variable: the judge would see nothing of the answer",
            place=place,
            hint="name what is judged, such as {{response}}",
        )

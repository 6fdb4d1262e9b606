"""Prompt templates for judge models with their variables, and rubrics, scored one by one."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Final, Protocol

from msgspec import Struct

from agentci._util.text.format import format_number
from agentci._util.text.javascript import stringify_json
from agentci._util.text.suggest import quote_name, suggest_name
from agentci._util.text.templates import list_template_names
from agentci.errors import InputError
from agentci.evaluators.agentv import findings
from agentci.evaluators.agentv.findings import Finding
from agentci.evaluators.agentv.payload import (
    encode_authored_messages,
    encode_messages,
    to_snake_case,
)
from agentci.evaluators.evaluator import list_recorded_uses
from agentci.model.case import AgentvCase
from agentci.model.judges import AggregateVerdict, ChecklistSchema, ScoreValue
from agentci.model.trace import Transcript
from agentci.model.values import Json, JsonObject, Place, Problem


def summarize_votes(name: str, aggregate: AggregateVerdict) -> str | None:
    """Return ``2 of 3 passed`` or all grades in order; None if the model was asked once."""
    values = [each.scores[name].value for each in aggregate.verdicts if name in each.scores]
    asked = len(aggregate.verdicts) + len(aggregate.failures)
    if asked == 1:
        return None
    if all(isinstance(value, bool) for value in values):
        text = f"{values.count(True)} of {len(values)} passed"
    elif all(isinstance(value, str) for value in values):
        text = ", ".join(f"{label} {times}" for label, times in Counter(values).most_common())
    else:
        text = ", ".join(format_number(value) for value in sorted(map(float, values)))
    failed = asked - len(values)
    return f"{text}; {failed} without a verdict" if failed else text


MAX_GRADE: Final = 10
# A criterion at or above this share of the highest grade is a hit.
HIT_SHARE: Final = 0.7


class GradeRange(Struct, frozen=True, kw_only=True):
    """The meaning of grades from ``low`` to ``high``, both included."""

    low: int
    high: int
    meaning: str


class Criterion(Struct, frozen=True, kw_only=True):
    """One rubric item.

    Attributes:
        text: what a good answer does; empty if only ``ranges`` describe it.
        required: whether the evaluator fails if the criterion is not met; None if not set.
        min_share: the share of the highest grade that a graded criterion must reach.
    """

    id: str
    text: str
    weight: float = 1.0
    required: bool | None = None
    min_share: float | None = None
    ranges: tuple[GradeRange, ...] = ()

    @property
    def name(self) -> str:
        """The prefix of lines about the criterion."""
        return f"[{self.id}]"

    @property
    def title(self) -> str:
        """The text; without one the id, as in AgentV."""
        return self.text or self.id

    def get_required_share(self, *, graded: bool) -> float | None:
        """Return the share below which the evaluator fails; None if it does not fail.

        The default for an ungraded criterion is 1.
        """
        if not graded:
            return None if self.required is False else 1.0
        return self.min_share if self.min_share is not None else 1.0 if self.required else None

    def meaning(self, grade: float) -> str:
        """Return the meaning of a grade; a mean grade is rounded down."""
        found = (each.meaning for each in self.ranges if each.low <= int(grade) <= each.high)
        return next(found, "")


class ScoredCriterion(Struct, frozen=True, kw_only=True):
    """A criterion with its result.

    Attributes:
        value: whether the criterion is met, or its grade.
        votes: a summary of the samples' results; None if the model was asked once.
    """

    criterion: Criterion
    value: ScoreValue
    reason: str
    votes: str | None

    @property
    def share(self) -> float:
        """The result as a share from 0 to 1."""
        return float(self.value) / (1 if isinstance(self.value, bool) else MAX_GRADE)

    @property
    def fails(self) -> bool:
        """Whether the criterion makes the evaluator fail."""
        required_share = self.criterion.get_required_share(graded=not isinstance(self.value, bool))
        return required_share is not None and self.share < required_share

    @property
    def is_hit(self) -> bool:
        """Whether the criterion counts as a hit."""
        return not self.fails and self.share >= HIT_SHARE

    @property
    def line(self) -> str:
        """The report line, in AgentV's format."""
        text = f"{self.criterion.name} {self.criterion.title}"
        if not isinstance(self.value, bool):
            grade = float(self.value)
            meaning = self.criterion.meaning(grade)
            text += (
                f" - Score: {format_number(grade)}/{MAX_GRADE}{f' ({meaning})' if meaning else ''}"
            )
        return f"{text}: {self.reason}" if self.reason else text

    @property
    def details(self) -> JsonObject:
        """The result as JSON data."""
        split: JsonObject = {} if self.votes is None else {"samples": self.votes}
        return {"satisfied" if isinstance(self.value, bool) else "score": self.value, **split}


SATISFIED_INSTRUCTIONS: Final = (
    "Check every item of the rubrics on its own, and report it under its id: satisfied is true if"
    " the item is fully met, and false otherwise."
)
GRADE_INSTRUCTIONS: Final = (
    "Grade every item of the rubrics on its own, and report it under its id, with a whole number"
    " from 0 to 10. If an item defines ranges, choose the range that fits and a number in it."
)


class Rubrics(Struct, frozen=True, kw_only=True):
    """Criteria with unique ids; if one of them has ranges, all of them are graded."""

    criteria: tuple[Criterion, ...]

    @property
    def is_graded(self) -> bool:
        """Whether the criteria are graded from 0 to 10 instead of met or not met."""
        return any(each.ranges for each in self.criteria)

    @property
    def form(self) -> ChecklistSchema:
        """The schema of the verdict."""
        names = tuple(each.id for each in self.criteria)
        return ChecklistSchema(
            names=names, kind="number" if self.is_graded else "boolean", high=MAX_GRADE
        )

    @property
    def instructions(self) -> str:
        """The judge model's instructions for the criteria."""
        return GRADE_INSTRUCTIONS if self.is_graded else SATISFIED_INSTRUCTIONS

    @property
    def text(self) -> str:
        """The criteria, one line each, with one line per range."""
        return "\n".join(line for each in self.criteria for line in self._lines(each))

    @property
    def data(self) -> list[Json]:
        """The criteria as JSON data."""
        return [self._data(each) for each in self.criteria]

    def make_finding(self, aggregate: AggregateVerdict) -> Finding:
        """Compute the score from the criteria that the judge model scored.

        A criterion without a result is left out of the score, as in AgentV, but prevents a pass.
        """
        scored = [
            self._score_criterion(each, aggregate)
            for each in self.criteria
            if each.id in aggregate.values
        ]
        missing = [each for each in self.criteria if each.id not in aggregate.values]
        total = sum(each.criterion.weight for each in scored)
        reached = sum(each.criterion.weight * each.share for each in scored)
        failed = [each.criterion for each in scored if each.fails]
        return Finding(
            score=reached / total if total else 0.0,
            hits=tuple(each.line for each in scored if each.is_hit),
            misses=(
                *(each.line for each in scored if not each.is_hit),
                *(f"{each.name} {each.title}: not graded by the judge" for each in missing),
            ),
            reasoning=aggregate.representative_verdict.reason or None,
            details={"criteria": {each.criterion.id: each.details for each in scored}},
            reason=_format_failure(failed, missing),
            fails=bool(failed),
            is_partial=bool(missing),
        )

    def _score_criterion(
        self, criterion: Criterion, aggregate: AggregateVerdict
    ) -> ScoredCriterion:
        name = criterion.id
        return ScoredCriterion(
            criterion=criterion,
            value=aggregate.values[name],
            reason=aggregate.find_score(name).reason,
            votes=summarize_votes(name, aggregate),
        )

    def _lines(self, criterion: Criterion) -> Iterator[str]:
        labels = ""
        required_share = criterion.get_required_share(graded=self.is_graded)
        if required_share is not None:
            least = (
                f": at least {format_number(required_share * MAX_GRADE)}" if self.is_graded else ""
            )
            labels = f" (required{least})"
        if criterion.weight != 1:
            labels += f" (weight: {format_number(criterion.weight)})"
        yield f"- {criterion.name}{labels}: {criterion.title}"
        yield from (f"  - {each.low} to {each.high}: {each.meaning}" for each in criterion.ranges)

    def _data(self, criterion: Criterion) -> JsonObject:
        ranges: JsonObject = {"score_ranges": [_format_range(each) for each in criterion.ranges]}
        return {
            "id": criterion.id,
            **({"outcome": criterion.text} if criterion.text else {}),
            "weight": criterion.weight,
            "required": criterion.get_required_share(graded=self.is_graded) is not None,
            **(ranges if criterion.ranges else {}),
        }


def _format_range(given: GradeRange) -> JsonObject:
    return {"score_range": [given.low, given.high], "outcome": given.meaning}


def _format_failure(failed: Sequence[Criterion], missing: Sequence[Criterion]) -> str | None:
    """Return why the evaluator fails regardless of the score, or None."""
    reasons = [f"required criteria not met: {_format_names(failed)}"] if failed else []
    if missing:
        reasons.append(f"not graded by the judge: {_format_names(missing)}")
    return "; ".join(reasons) or None


def _format_names(criteria: Sequence[Criterion]) -> str:
    return ", ".join(each.name for each in criteria)


# Variables with the agent's output; a template must use at least one.
CANDIDATE_VARIABLES: Final = frozenset(
    {"candidate_answer", "output", "output_messages", "tool_calls"}
)
# Text by the eval's author. All other text is untrusted: test questions may contain attacks, too.
TRUSTED_VARIABLES: Final = frozenset({"criteria", "expected_outcome", "rubrics", "rubrics_json"})


class TemplateSource(Struct, frozen=True, kw_only=True):
    """The case, its run and its rubrics, if any, that template variables are taken from."""

    agentv_case: AgentvCase
    transcript: Transcript
    rubrics: Rubrics | None = None


def make_template_values(template: str, source: TemplateSource) -> JsonObject:
    """Return the values of the known variables that a template names."""
    known = (name for name in list_template_names(template) if name in TEMPLATE_VARIABLES)
    return {name: TEMPLATE_VARIABLES[name](source) for name in known}


def collect_untrusted_texts(source: TemplateSource) -> Mapping[str, Iterator[str]]:
    """Collect all untrusted texts of a case and its run by variable name."""
    agentv_case, transcript = source.agentv_case, source.transcript
    return {
        "candidate_answer": iter((findings.extract_candidate_answer(transcript),)),
        "output_messages": _iterate_leaf_texts(
            [
                *(each.content for each in transcript.messages),
                *(value for use in transcript.tool_uses for value in (use.input, use.output)),
            ]
        ),
        "file_changes": iter((transcript.file_changes or "",)),
        "input_messages": _iterate_leaf_texts([*findings.iterate_prompt_segments(agentv_case)]),
        "expected_messages": _iterate_leaf_texts([*agentv_case.expected_messages]),
    }


def _iterate_leaf_texts(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for each in value.values():
                yield from _iterate_leaf_texts(each)
        case list():
            for each in value:
                yield from _iterate_leaf_texts(each)
        case _:
            return


def _criteria(source: TemplateSource) -> str:
    return source.agentv_case.criteria.strip()


def _question(source: TemplateSource) -> str:
    return findings.format_agent_prompt(source.agentv_case).strip()


def _reference(source: TemplateSource) -> str:
    return findings.extract_reference_answer(source.agentv_case).strip()


def _candidate(source: TemplateSource) -> str:
    return findings.extract_candidate_answer(source.transcript).strip()


def _input_messages(source: TemplateSource) -> str:
    return stringify_json([*findings.iterate_prompt_segments(source.agentv_case)], indent=2)


def _expected_messages(source: TemplateSource) -> str:
    return stringify_json(
        encode_authored_messages(source.agentv_case.expected_messages, to_snake_case), indent=2
    )


def _output_messages(source: TemplateSource) -> str:
    return stringify_json(encode_messages(source.transcript.messages, to_snake_case), indent=2)


def _tool_calls(source: TemplateSource) -> str:
    uses = list_recorded_uses(source.transcript)
    return "\n".join(f"- {use.tool} {stringify_json(use.input)}" for use in uses)


def _metadata(source: TemplateSource) -> str:
    return stringify_json(source.agentv_case.metadata, indent=2)


def _file_changes(source: TemplateSource) -> str:
    return source.transcript.file_changes or ""


def _rubrics(source: TemplateSource) -> str:
    return "" if source.rubrics is None else source.rubrics.text


def _rubrics_json(source: TemplateSource) -> str:
    return stringify_json([] if source.rubrics is None else source.rubrics.data, indent=2)


# Variables of all AgentV generations, which have different names for some.
TEMPLATE_VARIABLES: Final[Mapping[str, Callable[[TemplateSource], str]]] = {
    "candidate_answer": _candidate,
    "output": _candidate,
    "reference_answer": _reference,
    "expected_output": _reference,
    "question": _question,
    "input": _question,
    "criteria": _criteria,
    "expected_outcome": _criteria,
    "input_messages": _input_messages,
    "expected_messages": _expected_messages,
    "output_messages": _output_messages,
    "tool_calls": _tool_calls,
    "metadata": _metadata,
    "metadata_json": _metadata,
    "file_changes": _file_changes,
    "rubrics": _rubrics,
    "rubrics_json": _rubrics_json,
}


FILE_SCHEME: Final = "file://"
PROGRAM_SUFFIXES: Final = frozenset({".ts", ".mts", ".js", ".mjs", ".py"})

# A single word that is a path rather than a prompt.
_PATH_PATTERN: Final = re.compile(
    r"[^\s{}]*/[^\s{}]*|[^\s{}]+\.(?:md|markdown|txt|ts|mts|js|mjs|py)"
)


class TemplateFiles(Protocol):
    """The files of an eval file that hold templates, and the programs that write prompts."""

    def text(self, named: str, place: Place) -> str | None:
        """Return the text of the file named at ``place``; None if it does not exist.

        Raises:
            InputError: the file is outside the allowed folders or is not text.
        """

    def path(self, named: str, place: Place) -> str:
        """Return the absolute path of the file named at ``place``.

        Raises:
            InputError: the file is missing or outside the allowed folders.
        """

    def warn(self, problem: Problem) -> None:
        """Report a problem that does not stop the evaluation."""


class TemplateVocabulary(Struct, frozen=True, kw_only=True):
    """The variables that templates of one kind can use.

    Attributes:
        known: all variables.
        required: a template must use at least one of these variables.
        wrap: makes a template from text without variables.
    """

    known: frozenset[str]
    required: frozenset[str]
    wrap: Callable[[str], str]


class TemplateReader(Struct, frozen=True, kw_only=True):
    """Reads templates.

    Attributes:
        only_by_scheme: whether only ``file://path`` names a file, as in AgentV 4; in earlier
            versions any path of an existing file does. A text that is only the path of an existing
            file is read with a warning.
    """

    files: TemplateFiles
    only_by_scheme: bool

    def read(self, given: str, place: Place, vocabulary: TemplateVocabulary) -> str:
        """Return the template given at ``place``.

        Raises:
            InputError: the template's file is missing or unreadable, or the template uses no
                required variable.
        """
        named = given.removeprefix(FILE_SCHEME).strip()
        is_word = _PATH_PATTERN.fullmatch(named) is not None
        if given.startswith(FILE_SCHEME) or (not self.only_by_scheme and "\n" not in given):
            text = self.files.text(named, place)
            if text is not None:
                return self._checked(text, place, vocabulary, named)
        if given.startswith(FILE_SCHEME) or (is_word and not self.only_by_scheme):
            raise InputError.from_message(
                f"file not found: {named}",
                place=place,
                hint="the folder of this file and the folders above it are searched",
            )
        if is_word and (text := self.files.text(named, place)) is not None:
            message = f"the prompt is the file {named}; AgentV 4 would use its name as the prompt"
            hint = f"write `{FILE_SCHEME}{named}`"
            self.files.warn(Problem(message=message, place=place, hint=hint, severity="warning"))
            return self._checked(text, place, vocabulary, named)
        if is_word:
            raise InputError.from_message(
                f"the prompt is only a file name: {quote_name(given)}",
                place=place,
                hint=f"write `{FILE_SCHEME}{named}` to use the file",
            )
        return self._checked(given, place, vocabulary, "")

    def _checked(
        self, template: str, place: Place, vocabulary: TemplateVocabulary, file: str
    ) -> str:
        names = list_template_names(template)
        subject = file or "the prompt"
        for name in names:
            if name not in vocabulary.known:
                message = f"{subject} uses the unknown variable {quote_name(name)}; it is kept"
                hint = suggest_name(name, sorted(vocabulary.known))
                problem = Problem(message=message, place=place, hint=hint, severity="warning")
                self.files.warn(problem)
        if vocabulary.required.intersection(names):
            return template
        if not names and not file:
            return vocabulary.wrap(template)
        variables = " or ".join(f"{{{{ {name} }}}}" for name in sorted(vocabulary.required))
        is_program = PurePath(file).suffix in PROGRAM_SUFFIXES
        raise InputError.from_message(
            f"{subject} uses no variable with the agent's output",
            place=place,
            hint=f"to run a program that prints a prompt, write `prompt: {{script: [..., {file}]}}`"
            if is_program
            else f"add {variables}",
        )

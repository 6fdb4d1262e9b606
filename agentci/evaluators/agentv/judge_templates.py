"""Prompt templates for judge models: how they are read, and their variables."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Final, Protocol

from msgspec import Struct

from agentci._util.text.javascript import stringify_json
from agentci._util.text.suggest import quote_name, suggest_name
from agentci._util.text.templates import list_template_names
from agentci.errors import InputError
from agentci.evaluators.agentv import case_texts
from agentci.evaluators.agentv.payload import (
    encode_authored_messages,
    encode_messages,
    to_snake_case,
)
from agentci.evaluators.agentv.rubrics import Rubrics
from agentci.evaluators.recorded_calls import list_recorded_uses
from agentci.model.case import AgentvCase
from agentci.model.trace import Transcript
from agentci.model.values import Json, JsonObject, Place, Problem

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
        "candidate_answer": iter((case_texts.extract_candidate_answer(transcript),)),
        "output_messages": _iterate_leaf_texts(
            [
                *(each.content for each in transcript.messages),
                *(value for use in transcript.tool_uses for value in (use.input, use.output)),
            ]
        ),
        "file_changes": iter((transcript.file_changes or "",)),
        "input_messages": _iterate_leaf_texts([*case_texts.iterate_prompt_segments(agentv_case)]),
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
    return case_texts.format_agent_prompt(source.agentv_case).strip()


def _reference(source: TemplateSource) -> str:
    return case_texts.extract_reference_answer(source.agentv_case).strip()


def _candidate(source: TemplateSource) -> str:
    return case_texts.extract_candidate_answer(source.transcript).strip()


def _input_messages(source: TemplateSource) -> str:
    return stringify_json([*case_texts.iterate_prompt_segments(source.agentv_case)], indent=2)


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
        required: variables of which a template must use at least one.
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

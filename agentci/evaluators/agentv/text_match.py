"""AgentV 4 assertions about the response text: contains, equals, regex, is_json, ..."""

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final, Literal, Self

from msgspec import Struct
from pydantic import Field, model_validator

from agentci._util.child_programs import SEARCH_PATH
from agentci._util.text.json_text import dumps_compact
from agentci.errors import EvaluatorError
from agentci.evaluators.agentv.agentv_evaluator import (
    AgentvContext,
    AgentvEntry,
    define_agentv_entry,
    make_agentv_identity,
    make_pass_threshold,
)
from agentci.evaluators.agentv.case_texts import extract_candidate_answer
from agentci.evaluators.agentv.findings import (
    Finding,
    PassThreshold,
    get_recorded_run,
    make_agentv_judgement,
)
from agentci.evaluators.definition import Definition
from agentci.evaluators.evaluator import check_response
from agentci.evaluators.fields import optional
from agentci.evaluators.program_output import format_log_tail, parse_output
from agentci.model.case import AgentvCase, Case, Expectation
from agentci.model.program import LocalProgram
from agentci.model.requests import (
    EvaluatorIdentity,
    Judgement,
    Prerequisite,
    ProgramOutput,
    Response,
    RunProgram,
)
from agentci.model.trace import Transcript
from agentci.recordings.telemetry.json_input import parse_nested_json

FLAGS: Final[Mapping[str, re.RegexFlag]] = {
    "i": re.IGNORECASE,
    "m": re.MULTILINE,
    "s": re.DOTALL,
    "g": re.NOFLAG,
    "u": re.NOFLAG,
    "y": re.NOFLAG,
}


class TextMatch(Struct, frozen=True, kw_only=True):
    """The rule of all text assertions except ``regex``.

    Attributes:
        kind: the evaluator's type: ``contains``, ``icontains_any``, ``starts_with``, ...
        values: the texts to look for: several for ``*_any`` and ``*_all``, none for ``is_json``,
            else one.
    """

    kind: str
    values: tuple[str, ...]

    def read_expectation(self, _: AgentvCase) -> None:
        """Read nothing of the case."""

    def evaluate(self, _: AgentvCase, transcript: Transcript) -> Finding:
        """See ``ScoringRule``."""
        answer = extract_candidate_answer(transcript)
        if self.kind == "is_json":
            holds = _is_json(answer)
            return _make_match_finding(
                "Output is valid JSON" if holds else "Output is not valid JSON", holds=holds
            )
        fold = self.kind.startswith("i")
        kind = self.kind.removeprefix("i")
        seen = [value for value in self.values if _matches(kind, value, answer, fold=fold)]
        if kind == "contains_any":
            return _make_match_finding(
                _describe_any(self.values, seen, _CASE_NOTES[fold]), holds=bool(seen)
            )
        if kind == "contains_all":
            return _make_match_finding(
                _describe_all(self.values, seen, _CASE_NOTES[fold]),
                holds=len(seen) == len(self.values),
            )
        verb = _VERBS[kind][0 if seen else 1]
        return _make_match_finding(
            f"Output {verb} {_quote_all(self.values)}{_CASE_NOTES[fold]}", holds=bool(seen)
        )


# Wall time, which a loaded machine stretches; the program itself limits its processor time.
SEARCH_SECONDS: Final = 60
SEARCH_MB: Final = 1024


class RegexEvaluator(Struct, frozen=True, kw_only=True):
    """The ``regex`` evaluator.

    Attributes:
        definition: see ``ComparableEvaluator``.
        pattern: the pattern in Python's syntax.
        flag_bits: the flags as Python's number.
        shown, flags: the pattern and the flags as written.
    """

    identity: EvaluatorIdentity
    definition: Definition
    pattern: str
    flag_bits: int
    shown: str
    flags: str
    threshold: PassThreshold

    @property
    def needs(self) -> tuple[Prerequisite, ...]:
        """No prerequisites."""
        return ()

    def read_expectation(self, _: Expectation) -> None:
        """Read nothing of the case."""

    def ask(self, case: Case) -> RunProgram:
        """Search the answer in a child program, because some expressions take years."""
        answer = extract_candidate_answer(get_recorded_run(case)[1])
        return RunProgram(
            program=LocalProgram(path=SEARCH_PATH),
            stdin=dumps_compact({"pattern": self.pattern, "flags": self.flag_bits, "text": answer}),
            timeout_seconds=SEARCH_SECONDS,
            network=False,
            memory_mb=SEARCH_MB,
            # It is ours, and its response depends only on stdin.
            cached=True,
        )

    def read(self, response: Response) -> Judgement:
        """Make a judgement from whether the pattern was found.

        Raises:
            EvaluatorError: the search took too long or too much memory.
        """
        holds = self._parse_found(check_response(response, ProgramOutput))
        note = f" (flags: {self.flags})" if self.flags else ""
        verb = "matches" if holds else "does not match"
        finding = _make_match_finding(
            f"Output {verb} pattern /{self.shown}/{self.flags}{note}", holds=holds
        )
        return make_agentv_judgement(finding, self.threshold)

    def _parse_found(self, response: ProgramOutput) -> bool:
        match parse_output(response.stdout) if response.exit_code == 0 else {}:
            case {"found": bool(found)}:
                return found
            case _:
                reason = format_log_tail(response.stderr) or "the search printed no result"
                raise EvaluatorError(f"Evaluator `{self.identity.name}`: {reason}")


def parse_regex(pattern: str, flags: str) -> tuple[str, int]:
    """Convert a pattern in the syntax that JavaScript and Python share to Python's, and its flags.

    Raises:
        ValueError: the pattern or a flag is invalid.
    """
    unknown = [flag for flag in flags if flag not in FLAGS]
    if unknown:
        raise ValueError(f"unknown flag of the regular expression: {unknown[0]!r}")
    chosen = re.NOFLAG
    for flag in flags:
        chosen |= FLAGS[flag]
    translated = re.sub(r"\(\?<(?![=!])", "(?P<", pattern)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they would be printed with this file's name
            re.compile(translated, chosen)
    except RecursionError:
        raise ValueError("invalid regular expression: nested too deeply") from None
    except (re.error, OverflowError) as error:
        raise ValueError(f"invalid regular expression: {error}") from None
    return translated, int(chosen)


def _make_match_finding(line: str, *, holds: bool) -> Finding:
    return Finding(
        score=1.0 if holds else 0.0, hits=(line,) if holds else (), misses=() if holds else (line,)
    )


def _matches(kind: str, value: str, answer: str, *, fold: bool) -> bool:
    if fold:
        value, answer = value.lower(), answer.lower()
    return _OPERATORS.get(kind, _contains)(answer, value)


def _contains(answer: str, value: str) -> bool:
    return value in answer


def _describe_any(values: Sequence[str], seen: Sequence[str], note: str) -> str:
    if seen:
        return f"Output contains {_quote_all(seen[:1])}{note}"
    return f"Output does not contain any of: {_quote_all(values)}{note}"


def _describe_all(values: Sequence[str], seen: Sequence[str], note: str) -> str:
    missing = [value for value in values if value not in seen]
    if missing:
        return f"Output missing{note}: {_quote_all(missing)}"
    return f"Output contains all {len(values)} expected strings{note}"


def _quote_all(values: Sequence[str]) -> str:
    return ", ".join(f'"{value}"' for value in values)


def _is_json(answer: str) -> bool:
    try:
        parse_nested_json(answer)
    except ValueError:
        return False
    return True


_OPERATORS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "starts_with": lambda answer, value: answer.strip().startswith(value.strip()),
    "ends_with": lambda answer, value: answer.strip().endswith(value.strip()),
    "equals": lambda answer, value: answer.strip() == value.strip(),
}
_VERBS: Final = {
    "contains": ("contains", "does not contain"),
    "starts_with": ("starts with", "does not start with"),
    "ends_with": ("ends with", "does not end with"),
    "equals": ("equals", "does not equal"),
}
_CASE_NOTES: Final = ("", " (case-insensitive)")


class TextEntry(AgentvEntry):
    """Checks whether the response contains, starts with, ends with or equals a text."""

    type: Literal["contains", "icontains", "starts_with", "ends_with", "equals"] = Field(
        description="Checks the answer against a text."
    )
    value: str = Field(description="The text.")


class TextsEntry(AgentvEntry):
    """Checks whether the response contains any or all of several texts."""

    type: Literal["contains_any", "contains_all", "icontains_any", "icontains_all"] = Field(
        description="Checks whether the answer contains any or all of several texts."
    )
    value: Annotated[list[str], Field(min_length=1)] = Field(description="The texts.")


class RegexEntry(AgentvEntry):
    """Checks whether the response matches a regular expression."""

    type: Literal["regex"] = Field(
        description="Checks whether the answer matches a regular expression."
    )
    value: str = Field(description="The regular expression, without slashes.")
    flags: str = optional("Flags of the expression, such as `i`.", default="")

    @model_validator(mode="after")
    def _compiles(self) -> Self:
        parse_regex(self.value, self.flags)
        return self


class IsJsonEntry(AgentvEntry):
    """Checks whether the response is valid JSON."""

    type: Literal["is_json"] = Field(description="Checks whether the answer is valid JSON.")


def make_text_match(entry: TextEntry | TextsEntry | IsJsonEntry, _: AgentvContext) -> TextMatch:
    """Make the rule."""
    value = () if isinstance(entry, IsJsonEntry) else entry.value
    return TextMatch(kind=entry.type, values=(value,) if isinstance(value, str) else tuple(value))


def build_regex(entry: RegexEntry, context: AgentvContext) -> RegexEvaluator:
    """Make the evaluator."""
    pattern, flag_bits = parse_regex(entry.value, entry.flags)
    return RegexEvaluator(
        identity=make_agentv_identity(entry, context),
        definition=define_agentv_entry(entry, context),
        pattern=pattern,
        flag_bits=flag_bits,
        shown=entry.value,
        flags=entry.flags,
        threshold=make_pass_threshold(entry, context),
    )

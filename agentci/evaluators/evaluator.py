"""The interface of an evaluator: its needs, its request, how it reads the response, its definition.

The definition is written with the keys of configs, so that it changes with the config and not with
the code of agentci.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, TypeAlias

from agentci.model.case import AgentvCase, EvalCase, Expectation
from agentci.model.program import LocalProgram, Program, RequiredProgram
from agentci.model.requests import KEYS_NOT_AFFECTING_SCORES, EvaluatorIdentity
from agentci.model.values import Place

if TYPE_CHECKING:
    from pydantic import BaseModel
from collections.abc import Iterable
from typing import Protocol, TypeGuard, TypeVar

from agentci._util.text.patterns import matches_any
from agentci.errors import EvaluatorError
from agentci.model.case import Case
from agentci.model.requests import (
    ConstantJudgement,
    ExecutionRequest,
    Judgement,
    Prerequisite,
    Request,
    RequiredVariables,
    Response,
    RunProgram,
    Unrecorded,
)
from agentci.model.trace import ToolUse, Transcript, Turn

# Words within an argument, such as those of `sh -c "python check.py"`.
_WORD: Final = re.compile(r"[\w./+~-]+")


def split_words(command_line: Sequence[str]) -> Iterator[str]:
    """Yield the arguments of a command line and the words within them, each once."""
    yield from dict.fromkeys(word for part in command_line for word in (part, *_WORD.findall(part)))


class FileContents:
    """Files that a definition names; they count with their content.

    The modules that Python and JavaScript code imports count, too, if they are in the workspace.

    Attributes:
        paths: absolute paths; those that are not files are left out.
        home: absolute path of the repository of the config, if that is not the workspace.
        function: the function of the only file that is called; then only what it reaches counts.
        search_path: absolute paths of folders with modules, besides the folder of a file.
    """

    __slots__ = ("function", "home", "paths", "search_path")

    def __init__(
        self,
        *paths: str,
        home: str | None = None,
        function: str = "",
        search_path: Sequence[str] = (),
    ) -> None:
        self.paths = paths
        self.home = home
        self.function = function
        self.search_path = search_path


Facts: TypeAlias = (
    bool | int | float | str | FileContents | Sequence["Facts"] | Mapping[str, "Facts"] | None
)
Definition: TypeAlias = Mapping[str, Facts]


def define_entry(entry: "BaseModel", **resolved: Facts) -> Definition:
    """Define an evaluator by its entry.

    Args:
        resolved: values that replace keys of the entry or stand for what these name.
    """
    given = entry.model_dump(
        mode="json", by_alias=True, exclude_defaults=True, exclude=set(KEYS_NOT_AFFECTING_SCORES)
    )
    return {**given, "type": getattr(entry, "type", ""), **resolved}


def define_repeat(identity: EvaluatorIdentity) -> Definition:
    """Define how often an evaluator runs, for one that is not defined by an entry."""
    repetition = identity.repetition
    if repetition.times == 1:
        return {}
    return {"repeat": repetition.times, "repeat_by": repetition.aggregation}


def define_program(program: Program, *, function: str = "") -> Facts:
    """Define a program by its content; a remote one by where it comes from.

    Args:
        function: as in ``FileContents``.
    """
    if isinstance(program, LocalProgram):
        code = FileContents(program.path, home=program.home, function=function)
        if program.requirements is None:
            return code
        return [code, FileContents(program.requirements, home=program.home)]
    return {
        "source": program.source,
        "repo": program.repository,
        "rev": program.revision,
        "ref": program.ref,
        "sha256": program.sha256,
    }


def define_command(command: Sequence[str], *, folder: str, home: str | None = None) -> Facts:
    """Define a command by its words and the files that it names.

    Args:
        folder: absolute path of its working directory.
        home: as in ``FileContents``.
    """
    return [list(command), find_command_files(command, folder=folder, home=home)]


def find_command_files(
    command: Sequence[str], *, folder: str, home: str | None = None
) -> FileContents:
    """The files that the words of a command may name; arguments as for ``define_command``."""
    paths = (str(PurePath(folder, word)) for word in split_words(command))
    return FileContents(*paths, home=home)


def define_expectation(expectation: Expectation) -> Facts:
    """Return the whole expectation, for evaluators that may read any part of it."""
    eval_case, agentv_case = expectation.eval_case, expectation.agentv_case
    return {
        "eval_case": None if eval_case is None else _define_eval_case(eval_case),
        "agentv_case": None if agentv_case is None else _define_agentv_case(agentv_case),
        "columns": expectation.columns,
    }


def _define_eval_case(eval_case: EvalCase) -> Facts:
    return {
        "conversation": [
            {
                "invocation_id": turn.id,
                "user_content": turn.user_text,
                "final_response": turn.answer_parts,
                "tool_uses": [(call.name, call.args, call.id) for call in turn.tool_calls],
                "tool_responses": [
                    (each.name, each.output, each.id, each.call_index)
                    for each in turn.tool_responses
                ],
            }
            for turn in eval_case.turns
        ],
        "rubrics": [
            [(each.id, each.text, each.type) for each in rubrics] for rubrics in eval_case.rubrics
        ],
    }


def _define_agentv_case(agentv_case: AgentvCase) -> Facts:
    files = (*agentv_case.guideline_files, *agentv_case.input_files)
    return {
        "id": agentv_case.id,
        "criteria": agentv_case.criteria,
        "input": agentv_case.input_messages,
        "expected_output": agentv_case.expected_messages,
        "files": [list(files), FileContents(*files)],
        "texts": agentv_case.input_texts,
        "metadata": agentv_case.metadata,
        "prompt": agentv_case.judge_template,
    }


NO_TOOL_CALLS: Final = "the recording does not say which tools were called"
TOOL_CALLS: Final = "tool calls"
ARGUMENTS: Final = "arguments"
_UNRECORDED_MESSAGES: Final[Mapping[Unrecorded, str]] = {
    TOOL_CALLS: NO_TOOL_CALLS,
    ARGUMENTS: "the recording does not say with which arguments tools were called",
}
# How programs in any language name what they read of their input. The patterns are compiled where
# something was not recorded.
_UNRECORDED_NAMES: Final[Mapping[Unrecorded, str]] = {
    TOOL_CALLS: r"(?i:tool_?(?:calls?|uses?|names?|responses?)|intermediate_?steps|trace_?summary)"
    r"|output_(?:tools|items)",
    ARGUMENTS: r"""(?<=["'.`])(?:args|arguments)\b""",
}
# Code that tells "not recorded" from "none": by the input's own keys, or with agentci's SDK.
_AWARE_IMPORT: Final = r"agentci(?:\.|\s+import\s+)sdk\b"
_AWARE_CODE: Final[Mapping[Unrecorded, str]] = {
    TOOL_CALLS: rf"tool_calls_recorded|{_AWARE_IMPORT}",
    ARGUMENTS: rf"args_recorded|{_AWARE_IMPORT}",
}


def check_tool_calls_recorded(turns: Iterable[Turn]) -> None:
    """Check that it is known which tools were called.

    Raises:
        EvaluatorError: it is not.
    """
    if not all(turn.tool_calls_recorded for turn in turns):
        raise EvaluatorError(NO_TOOL_CALLS)


def list_recorded_uses(transcript: Transcript) -> tuple[ToolUse, ...]:
    """List the tool calls of an AgentV run.

    Raises:
        EvaluatorError: they were not recorded.
    """
    if not transcript.tool_calls_recorded:
        raise EvaluatorError(NO_TOOL_CALLS)
    return tuple(transcript.tool_uses)


def list_unrecorded(turns: Iterable[Turn]) -> tuple[Unrecorded, ...]:
    """List what the turns do not say about tool calls, for programs that may read it."""
    turns = tuple(turns)
    if not all(turn.tool_calls_recorded for turn in turns):
        return (TOOL_CALLS,)
    if any(call.args is None for turn in turns for call in turn.tool_calls):
        return (ARGUMENTS,)
    return ()


def check_reads_recorded(code: Iterable[str], unrecorded: Iterable[Unrecorded]) -> None:
    """Check that a program does not read what was not recorded: most would take it for "none".

    Args:
        code: the source texts of the program; without any, it may read everything.

    Raises:
        EvaluatorError: it does; the message continues "Evaluator `x` ...".
    """
    texts = tuple(code)
    for lacking in unrecorded:
        if any(re.search(_AWARE_CODE[lacking], text) for text in texts):
            continue
        found = (re.search(_UNRECORDED_NAMES[lacking], text) for text in texts)
        named = next(filter(None, found), None)
        if named is not None or not texts:
            reads = f"reads `{named[0]}`" if named else f"may read {lacking}"
            raise EvaluatorError(
                f"{reads}, but {_UNRECORDED_MESSAGES[lacking]}; record them, or see "
                "agentci's docs/writing-evaluators.md#what-was-not-recorded"
            )


R = TypeVar("R")
N = TypeVar("N")


def check_response(response: object, expected: type[R]) -> R:
    """Return a response of the type that belongs to the request.

    Raises:
        TypeError: if it is of another type, which is a bug of the engine.
    """
    if not isinstance(response, expected):
        raise TypeError(f"expected a {expected.__name__}, got a {type(response).__name__}")
    return response


def extract_judgement(response: Response) -> Judgement:
    """Return the judgement of a ``ConstantJudgement``."""
    return check_response(response, ConstantJudgement).judgement


class Evaluator(Protocol):
    """Two pure steps around work that an engine does: make a request, read the response."""

    @property
    def identity(self) -> EvaluatorIdentity:
        """The evaluator as reports show it."""

    @property
    def needs(self) -> tuple[Prerequisite, ...]:
        """What must be ready before a request: programs, judges, services and variables."""

    def ask(self, case: Case) -> Request:
        """Return the request that evaluates ``case``."""

    def read(self, response: Response) -> Judgement:
        """Convert a response to a judgement.

        Raises:
            EvaluatorError: if the response violates the protocol.
        """


class ComparableEvaluator(Evaluator, Protocol):
    """An evaluator that states what its results depend on, for fingerprints.

    Checks of two runs are compared if ``definition`` and what ``read_expectation`` returns are
    equal.
    """

    @property
    def definition(self) -> Definition:
        """All that decides its results besides the case, by the keys of configs."""

    def read_expectation(self, expectation: Expectation) -> Facts:
        """Return all that ``ask`` uses of the expectation of a case, and no more."""


def is_comparable(evaluator: Evaluator) -> TypeGuard[ComparableEvaluator]:
    """Return whether an evaluator states what its results depend on."""
    return hasattr(evaluator, "read_expectation")


def covers_case(evaluator: Evaluator, case_id: str, eval_case_id: str | None = None) -> bool:
    """Return whether an evaluator is for a case; one without patterns of ids is for all.

    Args:
        eval_case_id: id of the eval case; None if there is none.
    """
    by_case: Mapping[str, Evaluator] | None = getattr(evaluator, "by_case", None)
    if by_case is not None:
        return eval_case_id in by_case
    patterns: tuple[str, ...] = getattr(evaluator, "cases", ())
    ids = (case_id, case_id if eval_case_id is None else eval_case_id)
    return not patterns or any(matches_any(patterns, each) for each in ids)


def find_required_variables(
    identity: EvaluatorIdentity, run: ExecutionRequest
) -> tuple[RequiredVariables, ...]:
    """Return what an evaluator needs for the variables of the program that it runs."""
    if not (run.variables or run.cache_dirs):
        return ()
    return (
        RequiredVariables(
            names=run.variables,
            cache_dirs=run.cache_dirs,
            name=identity.name,
            place=identity.place,
        ),
    )


def list_program_needs(
    identity: EvaluatorIdentity, run: RunProgram, *, place: Place
) -> tuple[Prerequisite, ...]:
    """List the program that an evaluator runs, named at ``place``, and its variables."""
    program = RequiredProgram(program=run.program, name=identity.name, place=place)
    return (program, *find_required_variables(identity, run))


def collect_needs(evaluators: Iterable[Evaluator], kind: type[N]) -> tuple[N, ...]:
    """Collect the needs of one kind from all evaluators, each once."""
    distinct = {id(each): each for each in evaluators}.values()
    needs = (need for each in distinct for need in each.needs)
    return tuple(dict.fromkeys(need for need in needs if isinstance(need, kind)))

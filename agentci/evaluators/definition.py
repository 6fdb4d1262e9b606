"""The definition of an evaluator, for fingerprints: its entry with what that names.

It is written with the keys of configs, so that it changes with the config and not with the code of
agentci.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, TypeAlias

from agentci.model.case import AgentvCase, EvalCase, Expectation
from agentci.model.program import LocalProgram, Program
from agentci.model.requests import KEYS_WITHOUT_EFFECT, EvaluatorIdentity

if TYPE_CHECKING:
    from pydantic import BaseModel

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
        mode="json", by_alias=True, exclude_defaults=True, exclude=set(KEYS_WITHOUT_EFFECT)
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
    """The files that the words of a command may name; as ``define_command``."""
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

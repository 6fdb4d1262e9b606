"""What people said of cases: one a line, to hold judges against."""

from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct
from pydantic import ValidationError

from agentci._util.text.json_document import read_json
from agentci._util.text.suggest import quoted
from agentci._util.text.utf8 import decode
from agentci._util.workspace import read_file
from agentci.errors import InputError
from agentci.evaluators.fields import Strict, Text
from agentci.model.place import COMMAND_LINE, Place
from agentci.model.problem import Problem
from agentci.runner.services import World

MAX_LABEL_BYTES: Final = 64 * 1024**2
HINT: Final = 'a line is like {"case": "c1", "human": "pass"}'


class Label(Struct, frozen=True, kw_only=True):
    """What people said of one case.

    Attributes:
        passed: whether they passed it.
        evaluator: whose business it is; empty for all of them.
        place: where it stands.
    """

    case: str
    passed: bool
    evaluator: str
    place: Place


class Line(Strict):
    """A line of a file of labels.

    Attributes:
        note: for people.
    """

    case: Text
    human: Literal["pass", "fail"]
    evaluator: str = ""
    note: str = ""


def read_labels(name: str, world: World) -> tuple[Label, ...]:
    """Read a file of labels, from the working directory.

    Raises:
        InputError: it is not there, or some lines are no labels or contradict each other.
    """
    path = world.workspace.cwd / name
    shown = world.workspace.name_of(path)
    data = read_file(path, name=shown, limit_bytes=MAX_LABEL_BYTES, place=COMMAND_LINE)
    labels: dict[tuple[str, str], Label] = {}
    problems: list[Problem] = []
    for place, line in _lines(decode(data, file=shown), shown):
        try:
            label = _label(line, place)
        except InputError as error:
            problems += error.problems
            continue
        first = labels.setdefault((label.case, label.evaluator), label)
        if first is not label:
            message = (
                f"the case {quoted(label.case)} has a label already, in line {first.place.line}"
            )
            problems.append(Problem(message=message, place=place, hint="leave one of them out"))
    if problems:
        raise InputError(problems)
    if not labels:
        raise InputError.of("there are no labels", place=Place(file=shown), hint=HINT)
    return tuple(labels.values())


def _lines(text: str, file: str) -> Iterator[tuple[Place, str]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield Place(file=file, line=number), line


def _label(line: str, place: Place) -> Label:
    try:
        value = read_json(line.encode(), file=place.file).value
    except InputError as error:
        raise InputError(
            [Problem(message=each.message, place=place, hint=each.hint) for each in error.problems]
        ) from None
    try:
        said = Line.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        message = f"this is no label: {where and f'{where}: '}{first['msg']}"
        raise InputError.of(message, place=place, hint=HINT) from None
    return Label(case=said.case, passed=said.human == "pass", evaluator=said.evaluator, place=place)

"""A grader function missing from its file is reported before any program runs."""

import pytest

from agentci.errors import InputError
from agentci.evaluators.evaluator_type import TextFile
from agentci.evaluators.pytest_agent_evals import check_function_exists
from agentci.model.values import Place

PLACE = Place(file="agentci.yaml", line=3)


def _check(text: str) -> None:
    check_function_exists(TextFile(name="g.py", text=text), "grade", PLACE)


@pytest.mark.parametrize(
    "text",
    [
        "def grade(sample, item): ...",
        "if True:\n    async def grade(sample, item): ...",
        "from others import grade",
        "from others import other as grade",
        "from others import *",
        "grade = partial(other, 1)",
    ],
)
def test_file_that_may_define_function_is_accepted(text: str) -> None:
    _check(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("def grader(sample, item): ...", "did you mean 'grader'?"),
        ("def one(): ...\nasync def two(): ...", "its functions are one, two"),
        ("degrade = 1", None),
        ("", None),
    ],
)
def test_missing_function_is_rejected(text: str, hint: str | None) -> None:
    with pytest.raises(InputError) as error:
        _check(text)
    [problem] = error.value.problems
    assert problem.message == "no function 'grade' in g.py"
    assert (problem.place, problem.hint) == (PLACE, hint)

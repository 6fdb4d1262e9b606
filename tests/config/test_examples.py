"""Example configs and their expected problems; each example is a folder.

``problems.txt`` beside a config lists its problems, one per line; a config without one has none.
``pytest --update-golden`` writes the current problems, for review.
"""

from pathlib import Path

import pytest

from agentci.config.overrides import Overrides
from agentci.config.suite import read_suite
from agentci.config.yaml_document import read_yaml
from agentci.errors import InputError
from agentci.model.values import Problem
from tests.helpers.programs import AnyPrograms

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def _cases(kind: str) -> list[Path]:
    return sorted(path for path in (EXAMPLES / kind).iterdir() if path.is_dir())


def _read_problems(case: Path) -> tuple[bool, str]:
    """Returns whether the config in ``case`` is valid, and its problems."""
    config = case / "config.yaml"

    try:
        document = read_yaml(config.read_bytes(), file=config.name)
        suite = read_suite(document, Overrides(), AnyPrograms(case))
    except InputError as error:
        return False, _format_lines(error.problems)
    return True, _format_lines(suite.notices)


def _format_lines(problems: tuple[Problem, ...]) -> str:
    return "".join(f"{problem.severity}: {problem}\n" for problem in problems)


def _check(case: Path, problems: str, *, update: bool) -> None:
    expected = case / "problems.txt"
    if update:
        expected.unlink(missing_ok=True)
        if problems:
            expected.write_text(problems, encoding="utf-8", newline="\n")
    assert problems == (expected.read_text(encoding="utf-8") if expected.is_file() else "")


@pytest.mark.parametrize("case", _cases("good"), ids=lambda case: case.name)
def test_valid_config_is_accepted(case: Path, request: pytest.FixtureRequest) -> None:
    is_valid, problems = _read_problems(case)
    assert is_valid, problems
    _check(case, problems, update=request.config.getoption("--update-golden"))


@pytest.mark.parametrize("case", _cases("bad"), ids=lambda case: case.name)
def test_invalid_config_reports_all_problems(case: Path, request: pytest.FixtureRequest) -> None:
    is_valid, problems = _read_problems(case)
    assert not is_valid
    _check(case, problems, update=request.config.getoption("--update-golden"))

"""Configs in folders, and what is said of each: a new case is a folder.

``complaints.txt`` beside a config holds all problems, a line each; a config without one is
spotless. ``pytest --update-golden`` writes what is said now, to be looked at.
"""

from pathlib import Path

import pytest

from agentci.config.overrides import Overrides
from agentci.config.suite import read_suite
from agentci.config.yaml_document import read_yaml
from agentci.errors import InputError
from agentci.model.problem import Problem
from tests.helpers.programs import AnyPrograms

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def _cases(kind: str) -> list[Path]:
    return sorted(path for path in (EXAMPLES / kind).iterdir() if path.is_dir())


def _said_of(case: Path) -> tuple[bool, str]:
    """Whether the config in ``case`` can be run, and all that is said of it."""
    config = case / "config.yaml"

    try:
        document = read_yaml(config.read_bytes(), file=config.name)
        suite = read_suite(document, Overrides(), AnyPrograms(case))
    except InputError as error:
        return False, _lines(error.problems)
    return True, _lines(suite.notices)


def _lines(problems: tuple[Problem, ...]) -> str:
    return "".join(f"{problem.severity}: {problem}\n" for problem in problems)


def _check(case: Path, said: str, *, update: bool) -> None:
    expected = case / "complaints.txt"
    if update:
        expected.unlink(missing_ok=True)
        if said:
            expected.write_text(said, encoding="utf-8", newline="\n")
    assert said == (expected.read_text(encoding="utf-8") if expected.is_file() else "")


@pytest.mark.parametrize("case", _cases("good"), ids=lambda case: case.name)
def test_a_good_config_can_be_run(case: Path, request: pytest.FixtureRequest) -> None:
    can_be_run, said = _said_of(case)
    assert can_be_run, said
    _check(case, said, update=request.config.getoption("--update-golden"))


@pytest.mark.parametrize("case", _cases("bad"), ids=lambda case: case.name)
def test_a_bad_config_is_refused_with_all_that_is_wrong(
    case: Path, request: pytest.FixtureRequest
) -> None:
    can_be_run, said = _said_of(case)
    assert not can_be_run
    _check(case, said, update=request.config.getoption("--update-golden"))

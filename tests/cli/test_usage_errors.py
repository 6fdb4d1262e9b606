"""The command line says what it takes, and what may have been meant by what it does not take."""

from pathlib import Path

import pytest

from agentci.cli.arguments import PLAN_OPTIONS
from agentci.cli.main import main
from agentci.config.options import OPTIONS

RUN = [option.name for option in OPTIONS if not option.input_only]


def _told(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a command says that ends before it has begun."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    said = capsys.readouterr()
    assert ended.value.code == (2 if said.err else 0)
    return said.err or said.out


@pytest.mark.parametrize("name", RUN)
def test_the_help_of_plan_lists_what_changes_a_plan(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (f"--{name}" in _told(["plan", "--help"], capsys).split()) is (name in PLAN_OPTIONS)


def test_plan_takes_the_command_line_of_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", f"{tmp_path}/gone.yaml", "--output-dir", "out", "--fail-on", "never"]) == 2
    assert "gone.yaml does not exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["run", "t.json", "--config", "eval_config.yaml"], "name configs without an option"),
        (["plan", "t.json", "-c", "eval_config.yaml"], "name configs without an option"),
        (["run", "--trace=t.json"], "did you mean '--traces'?"),
        (["run", "--eval_set", "eval_set.json"], "did you mean '--eval-set'?"),
        (["lock", "--catch-dir", "x"], "did you mean '--cache-dir'?"),
        (["validate", "--traces", "t.json"], "try `agentci validate --help`"),
        (["run", "-f", "t.json"], "try `agentci run --help`"),
        (["run", "e.yaml", "--traces", "a.json", "b.json"], "put a glob in quotes"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_words_that_say_nothing_bring_a_way_out(
    words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = _told(words, capsys)
    assert "unrecognized arguments: " in told
    assert hint in told

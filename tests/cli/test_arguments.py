"""Help and usage errors of the command line."""

from pathlib import Path

import pytest

from agentci.cli.arguments import CONFIG_HINT, PLAN_OPTIONS
from agentci.config.options import OPTIONS
from tests.helpers.support import run_agentci

RUN = [option.name for option in OPTIONS if not option.input_only]


def _parse_output(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The output of a command line that exits while it is parsed."""
    with pytest.raises(SystemExit) as ended:
        run_agentci(words, cwd=Path.cwd())
    captured = capsys.readouterr()
    assert ended.value.code == (2 if captured.err else 0)
    return captured.err or captured.out


@pytest.mark.parametrize("name", RUN)
def test_plan_help_lists_only_plan_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert (f"--{name}" in _parse_output(["plan", "--help"], capsys).split()) is (
        name in PLAN_OPTIONS
    )


def test_plan_accepts_all_run_options(tmp_path: Path) -> None:
    words = ["plan", "gone.yaml", "--output-dir", "out", "--fail-on", "never"]
    ran = run_agentci(words, cwd=tmp_path)
    assert (ran.code, [each.message for each in ran.problems]) == (2, ["gone.yaml does not exist"])


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (
            ["run", "t.json", "--config", "eval_config.yaml"],
            CONFIG_HINT,
        ),
        (
            ["plan", "t.json", "-c", "eval_config.yaml"],
            CONFIG_HINT,
        ),
        (["run", "--trace=t.json"], "did you mean '--traces'?"),
        (["run", "--eval_set", "eval_set.json"], "did you mean '--eval-set'?"),
        (["lock", "--catch-dir", "x"], "did you mean '--cache-dir'?"),
        (["validate", "--traces", "t.json"], "try `agentci validate --help`"),
        (["run", "-f", "t.json"], "try `agentci run --help`"),
        (["record", "--output", "x", "--", "true"], "did you mean '--out'?"),
        (["record", "--output=x", "--", "true"], "did you mean '--out'?"),
        (["record", "--job", "2", "--", "true"], "did you mean '--jobs'?"),
        (["record", "--case-file", "c.yaml", "--", "true"], "did you mean '--cases'?"),
        (["run", "--eval-set-file=c.yaml"], "did you mean '--eval-set'?"),
        (["record", "agent", "--foo"], "write `--` before the command"),
        (["record", "-o", "x", "--", "true", "--foo"], "try `agentci record --help`"),
        (["evaluator", "fetch", "x", "--barnch=y"], "did you mean '--branch'?"),
        (["show", "a.json", "--jsno"], "did you mean '--json'?"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_unknown_option_error_has_hint(
    words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    output = _parse_output(words, capsys)
    option = next(word for word in words[1:] if word.startswith("-")).partition("=")[0]
    assert output.startswith(f"error: unknown option `{option}`; {hint}")


def test_extra_argument_error_has_hint(capsys: pytest.CaptureFixture[str]) -> None:
    output = _parse_output(["run", "e.yaml", "--traces", "a.json", "b.json"], capsys)
    assert output == (
        "error: unexpected argument `b.json`; put a glob in quotes, and an option before each "
        "value\n"
    )
    output = _parse_output(["init", "extra"], capsys)
    assert output == "error: unexpected argument `extra`; try `agentci init --help`\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nope"], "unknown command `nope`; try `agentci --help`"),
        (["runn"], "unknown command `runn`; did you mean 'run'?"),
        (["cache", "foo"], "unknown action `foo`; choose dir, list, verify or clean"),
        (["completion", "foo"], "unknown shell `foo`; choose bash, zsh or fish"),
        (
            ["record", "--replay=a b", "--", "true"],
            "--replay must be strict or fallback, not 'a b'; try `agentci record --help`",
        ),
        (["run", "--traces"], "--traces needs a value; try `agentci run --help`"),
        (
            ["record", "--jobs", "0", "--", "true"],
            "--jobs must be a whole number from 1 to 64, not '0'; try `agentci record --help`",
        ),
        (["show"], "the following arguments are required: FILE; try `agentci show --help`"),
    ],
)
def test_wrong_argument_is_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _parse_output(words, capsys) == f"error: {message}\n"


@pytest.mark.parametrize("name", ["baseline", "only", "threshold"])
def test_empty_option_is_an_error(name: str, tmp_path: Path) -> None:
    ran = run_agentci(["run", f"--{name}", " "], cwd=tmp_path)
    assert (ran.code, [each.message for each in ran.problems]) == (2, [f"--{name} is empty"])

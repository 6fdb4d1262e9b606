"""Completion of commands and options, suggestions for misspelled ones, and --open."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentci.cli.main import COMMANDS
from tests.helpers.recordings import otlp
from tests.helpers.support import run_agentci

AGENTCI = Path(sys.executable).parent / "agentci"


def complete(folder: Path, *words: str) -> list[str]:
    """Complete the last word as bash does."""
    script = run_agentci(["completion", "bash"], cwd=folder).out
    listed = " ".join(f"'{word}'" for word in ("agentci", *words))
    script += f"COMP_WORDS=({listed}); COMP_CWORD={len(words)}\n"
    done = subprocess.run(
        ["bash", "-c", f'{script}_agentci; echo "${{COMPREPLY[@]}}"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["va"], ["validate"]),
        (["run", "--eval"], ["--eval-set", "--evaluator-cache", "--evaluator-io"]),
        (["evaluator", "in"], ["init"]),
        (["evaluator", "run", "--thr"], ["--threshold"]),
        (["cache", "list", "--js"], ["--json"]),
    ],
)
def test_bash_completes(tmp_path: Path, words: list[str], expected: list[str]) -> None:
    assert complete(tmp_path, *words) == expected


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_know_all_commands(tmp_path: Path, shell: str) -> None:
    script = run_agentci(["completion", shell], cwd=tmp_path).out
    assert all(name in script for name in COMMANDS)
    assert "trajectory-match-type" in script


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rnu"], "did you mean 'run'?"),
        (["evaluator", "lst"], "did you mean 'list'?"),
        (["accept", "--arguments", "key"], "did you mean 'keys'?"),
        (["help", "rnu"], "did you mean 'run'?"),
    ],
)
def test_misspelled_word_gets_a_suggestion(
    tmp_path: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        run_agentci(words, cwd=tmp_path)
    assert raised.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["run"], ["evaluator"], ["evaluator", "run"], [], ["completion"]]
)
def test_help_is_that_of_the_option(
    tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    printed = []
    for line in (["help", *words], [*words, "--help"]):
        with pytest.raises(SystemExit) as raised:
            run_agentci(line, cwd=tmp_path)
        assert raised.value.code == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert printed[0].startswith("usage: agentci")


def test_help_of_completion_names_the_shells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run_agentci(["completion", "--help"], cwd=tmp_path)
    printed = " ".join(capsys.readouterr().out.split())
    assert "bash, zsh or fish" in printed
    assert "agentci completion fish > ~/.config/fish/completions/agentci.fish" in printed


def test_misspelled_case_gets_a_suggestion(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(otlp("Refund 4711"))
    (tmp_path / "agentci.yaml").write_text("traces: t.jsonl\nchecks: [max_words: 9]\n")
    for case, hint in (("Refnd 4711", "did you mean 'Refund 4711'?"), ("x*", "`agentci plan`")):
        ran = run_agentci(["run", "--case", case], cwd=tmp_path)
        assert ran.code == 2
        assert f"no case to check matches --case {case}; {hint}" in ran.out


def test_open_shows_the_report_in_the_browser(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(otlp())
    (tmp_path / "agentci.yaml").write_text("traces: t.jsonl\nchecks: [max_words: 9]\n")
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    subprocess.run(
        [AGENTCI, "run", "--open"],
        cwd=tmp_path,
        env={**os.environ, "BROWSER": f"{browser} %s"},
        check=True,
        capture_output=True,
    )
    report = tmp_path / "agentci-results" / "report.html"
    assert (tmp_path / "opened").read_text().strip() == report.as_uri()


@pytest.mark.parametrize(
    ("variables", "has_colours"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)
def test_colours_can_be_forced(
    tmp_path: Path, variables: dict[str, str], has_colours: bool
) -> None:
    (tmp_path / "t.jsonl").write_text(otlp())
    inherited = {key: value for key, value in os.environ.items() if "COLOR" not in key}
    done = subprocess.run(
        [AGENTCI, "show", "t.jsonl"],
        cwd=tmp_path,
        env={**inherited, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ("\x1b[" in done.stdout) == has_colours

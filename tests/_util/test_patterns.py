"""Patterns from configs, run on texts from agents."""

import subprocess
import sys
from pathlib import Path

import pytest

from agentci._util.text.patterns import SafePattern, compile_pattern
from agentci.errors import InputError


@pytest.mark.parametrize("written", [r"(?=a)", r"(a)\1", r"a\Z", "a{1001}", "(", "[z-a]"])
def test_pattern_that_re2_does_not_have_is_refused(
    written: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        compile_pattern(written)
    assert capfd.readouterr().err == ""


def test_search_and_whole_match() -> None:
    pattern = compile_pattern("b+")
    found = pattern.search("abbc")
    assert found is not None
    assert found.span() == (1, 3)
    assert pattern.search("x") is None
    assert pattern.matches_whole("bb")
    assert not pattern.matches_whole("abb")
    assert [each.group() for each in pattern.finditer("b bb")] == ["b", "bb"]


def test_text_that_utf8_cannot_encode() -> None:
    assert compile_pattern("a").search("\ud800a") is not None


def test_nested_repeats_take_linear_time() -> None:
    assert compile_pattern("(a+)+$").search("a" * 100_000 + "b") is None


@pytest.mark.parametrize(
    ("check", "answer"),
    [("matches: a+", "a"), ("no_secrets: true", f"The token is ghp_{'aB3' * 12}.")],
)
def test_missing_re2_is_a_configuration_error(check: str, answer: str, tmp_path: Path) -> None:
    (tmp_path / "agentci.yaml").write_text(f"dataset: rows.jsonl\nchecks: [{{{check}}}]\n")
    (tmp_path / "rows.jsonl").write_text(f'{{"query": "q", "response": "{answer}"}}\n')
    program = (
        "import sys; sys.modules['re2'] = None; from agentci.cli.main import main; sys.exit(main())"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, "run"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2, ran.stdout + ran.stderr
    [line] = [each for each in (ran.stdout + ran.stderr).splitlines() if "google-re2" in each]
    assert line.endswith("install it: pip install google-re2")


def test_missing_re2_is_an_input_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(InputError, match="google-re2, which searches patterns"):
        SafePattern("a")

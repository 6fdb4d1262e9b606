"""Command lines of agents: placeholders and quoting."""

import subprocess

from agentci.config.agentv.targets import fill_command, find_placeholders, format_file_path

HOSTILE = """it's $(id) `id` "x"; {EVAL_ID}"""
VALUES = {"PROMPT": HOSTILE, "EVAL_ID": "a b", "ATTEMPT": "0"}


class TestCommandLine:
    def test_shell_line_quotes_placeholder_values(self) -> None:
        line = "printf '%s|' {PROMPT} {EVAL_ID} {FILES}"
        command = fill_command(line, VALUES, ["/w/a.txt", "/w/b c.txt"])
        stdout = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert stdout == f"{HOSTILE}|a b|/w/a.txt|/w/b c.txt|"

    def test_shell_variables_and_unknown_placeholders_are_kept(self) -> None:
        command = fill_command("echo ${PROMPT} {prompt} {OTHER} {ATTEMPT}", VALUES, [])
        assert command == ("sh", "-c", "echo ${PROMPT} {prompt} {OTHER} 0")


class TestWordList:
    def test_word_list_runs_without_shell(self) -> None:
        command = fill_command(("agent", "--ask={PROMPT}", "{EVAL_ID}"), VALUES, [])
        assert command == ("agent", f"--ask={HOSTILE}", "a b")

    def test_files_placeholder_expands_only_as_whole_word(self) -> None:
        words = ("agent", "{FILES}", "files: {FILES}")
        assert fill_command(words, {}, ["a", "b c"]) == ("agent", "a", "b c", "files: a b c")


def test_all_placeholders_are_found_in_order() -> None:
    assert list(find_placeholders("{PROMPT} {PROMT} ${HOME} {x} {PROMPT}")) == ["PROMPT", "PROMT"]
    assert list(find_placeholders(("{EVAL_ID}", "b"))) == ["EVAL_ID"]


def test_file_path_follows_format() -> None:
    assert format_file_path("/w/a{basename}.txt", "-f {path}") == "-f /w/a{basename}.txt"
    assert format_file_path("/w/a.txt", "{basename}={path}") == "a.txt=/w/a.txt"

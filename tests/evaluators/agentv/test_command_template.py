"""Command lines of agents: placeholders and quoting."""

import subprocess

from agentci.evaluators.agentv.command_template import (
    fill_command,
    find_placeholders,
    format_file_path,
)

HOSTILE = """it's $(id) `id` "x"; {EVAL_ID}"""
VALUES = {"PROMPT": HOSTILE, "EVAL_ID": "a b", "ATTEMPT": "0"}


class TestALine:
    def test_is_given_to_a_shell_that_cannot_be_talked_into_anything(self) -> None:
        line = "printf '%s|' {PROMPT} {EVAL_ID} {FILES}"
        command = fill_command(line, VALUES, ["/w/a.txt", "/w/b c.txt"])
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert said == f"{HOSTILE}|a b|/w/a.txt|/w/b c.txt|"

    def test_keeps_the_variables_of_the_shell_and_what_is_no_placeholder(self) -> None:
        command = fill_command("echo ${PROMPT} {prompt} {OTHER} {ATTEMPT}", VALUES, [])
        assert command == ("sh", "-c", "echo ${PROMPT} {prompt} {OTHER} 0")


class TestWords:
    def test_are_read_by_no_shell(self) -> None:
        command = fill_command(("agent", "--ask={PROMPT}", "{EVAL_ID}"), VALUES, [])
        assert command == ("agent", f"--ask={HOSTILE}", "a b")

    def test_stand_for_one_file_each_only_where_they_are_nothing_else(self) -> None:
        words = ("agent", "{FILES}", "files: {FILES}")
        assert fill_command(words, {}, ["a", "b c"]) == ("agent", "a", "b c", "files: a b c")


def test_placeholders_are_found_whether_they_are_known_or_not() -> None:
    assert list(find_placeholders("{PROMPT} {PROMT} ${HOME} {x} {PROMPT}")) == ["PROMPT", "PROMT"]
    assert list(find_placeholders(("{EVAL_ID}", "b"))) == ["EVAL_ID"]


def test_files_are_written_as_the_format_says() -> None:
    assert format_file_path("/w/a{basename}.txt", "-f {path}") == "-f /w/a{basename}.txt"
    assert format_file_path("/w/a.txt", "{basename}={path}") == "a.txt=/w/a.txt"

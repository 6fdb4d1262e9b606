"""The lines that a pull request's diff shows are read as git writes them."""

import subprocess
from pathlib import Path

import pytest

from agentci.model.problem import Place
from agentci.reports.workflow_commands import distance_to_diff, parse_hunks

CONTEXT = 3


def patch_of(folder: Path, before: str, after: str) -> str:
    """What git says of a file, from its first hunk on, as GitHub's API passes it on."""
    for name, text in (("a", before), ("b", after)):
        (folder / name).write_bytes(text.encode())
    ran = subprocess.run(
        ["git", "diff", "--no-index", "--text", "a", "b"],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    text = ran.stdout.decode()
    return text[text.index("\n@@ ") + 1 :]


def numbered(*lines: int, of: int = 50, mark: str = " changed") -> str:
    """A file, some of whose lines differ."""
    return "".join(f"line {n}{mark if n in lines else ''}\n" for n in range(1, of + 1))


def test_a_change_is_shown_with_the_lines_around_it(tmp_path: Path) -> None:
    shown = parse_hunks(patch_of(tmp_path, numbered(), numbered(20, 40)))
    assert shown == (range(17, 24), range(37, 44))


def test_lines_are_those_of_the_file_as_it_is_now(tmp_path: Path) -> None:
    (shown,) = parse_hunks(patch_of(tmp_path, numbered(), "new\n" * 5 + numbered()))
    assert shown == range(1, 6 + CONTEXT)


def test_a_hunk_of_one_line_may_leave_out_how_many_it_has(tmp_path: Path) -> None:
    assert parse_hunks(patch_of(tmp_path, "x\n", "y\n")) == (range(1, 2),)


def test_a_file_that_is_emptied_shows_none(tmp_path: Path) -> None:
    (shown,) = parse_hunks(patch_of(tmp_path, "x\n", ""))
    assert list(shown) == []


def test_a_line_that_looks_like_a_hunk_is_none(tmp_path: Path) -> None:
    forged = "@@ -1 +900,9 @@\r@@ -1 +800,9 @@\n"
    assert parse_hunks(patch_of(tmp_path, "", forged)) == (range(1, 2),)


@pytest.mark.parametrize(
    "patch",
    ["", "no patch", "@@ -1 +", "@@ -1 +x @@", f"@@ -1 +{'9' * 5000} @@", "@@ -1 +\u0661 @@"],
)
def test_what_is_no_patch_shows_nothing(patch: str) -> None:
    assert parse_hunks(patch) == ()


def test_a_line_that_is_shown_is_nearer_than_its_file_and_that_than_others() -> None:
    diff = {"a.yaml": (range(3, 5), range(9, 12)), "image.png": ()}
    assert [distance_to_diff(Place(file="a.yaml", line=line), diff) for line in (3, 4, 10)] == [
        0,
        0,
        0,
    ]
    assert [distance_to_diff(Place(file="a.yaml", line=line), diff) for line in (2, 5, 12)] == [
        1,
        1,
        1,
    ]
    assert distance_to_diff(Place(file="image.png"), diff) == 1
    assert distance_to_diff(Place(file="b.yaml", line=3), diff) == 2
    assert distance_to_diff(None, diff) == 2
